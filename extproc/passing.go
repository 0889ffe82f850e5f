package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/warmpath/warmpath/internal/prefix"
)

// unsteered answers the headers of a request that is not decided here.
func (s *stream) unsteered(m *extprocv3.HttpHeaders) answer {
	s.head = readHead(m.GetHeaders(), s.settings.TenantHeader, s.settings.ComponentHeader)
	_, pathModel := prefix.Classify(s.head.prefix.Path)
	s.findPool(pathModel)
	a := answer{decided: true, metadataOnly: s.head.full, steered: s.head.steered, forged: s.head.pooled}
	if s.rerouted {
		a.cluster = s.pool.Cluster
	}
	if s.mode == modeNone || m.GetEndOfStream() {
		a.retryOn, a.maxRetries = s.settings.retryOn, s.settings.maxRetries
	}
	return a
}

// passing answers a later message of such a request.
func (s *stream) passing(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestBody:
		a := unchanged
		if s.mode == modeDuplex {
			a.echo = r.RequestBody
		}
		return s.server.toBody(a)
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return passResponseHeaders
	case *extprocv3.ProcessingRequest_ResponseBody:
		if s.back == modeDuplex {
			return echoResponseBody(r.ResponseBody)
		}
		return passResponseBody
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return passRequestTrailers
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return passResponseTrailers
	default:
		return nil
	}
}

// lost is the error with which a stream ends that a defect has broken: nil where Envoy
// goes on by itself. In full duplex it keeps no copy of the body, so going on would send a
// part of it as if it were all; it has to fail the request instead.
func (s *stream) lost() error {
	if !s.broken || s.mode != modeDuplex && s.back != modeDuplex {
		return nil
	}
	return status.Error(codes.Aborted, "")
}
