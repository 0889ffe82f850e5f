package main

import (
	"strconv"
	"strings"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/route"
)

// processor answers with one of a few decisions that were made before it began,
// in turn: with a single one all requests would go to one endpoint, over fewer
// connections than those of the routers it is compared with.
type processor struct {
	extprocv3.UnimplementedExternalProcessorServer

	body bool
	// The answers with a decision to the headers and to the body.
	toHeaders, toBody []*extprocv3.ProcessingResponse
	next              atomic.Uint64
}

func newProcessor(endpoints []string, body bool) *processor {
	p := &processor{body: body}
	for i := range endpoints {
		var choices []string
		for n := range min(route.MaxChoices, len(endpoints)) {
			choices = append(choices, endpoints[(i+n)%len(endpoints)])
		}
		common, metadata := decision(strings.Join(choices, ","))
		p.toHeaders = append(p.toHeaders, &extprocv3.ProcessingResponse{
			Response:        &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{Response: common}},
			DynamicMetadata: metadata,
		})
		p.toBody = append(p.toBody, &extprocv3.ProcessingResponse{
			Response:        &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: common}},
			DynamicMetadata: metadata,
		})
	}
	return p
}

// decision is what warmpath says of a choice: its header, the headers that switch
// retries on, and the metadata.
func decision(choices string) (*extprocv3.CommonResponse, *structpb.Struct) {
	retry := config.Default().Retry
	conditions := make([]string, len(retry.Conditions))
	for i, c := range retry.Conditions {
		conditions[i] = string(c)
	}
	var mutation extprocv3.HeaderMutation
	for _, header := range []*corev3.HeaderValue{
		{Key: extproc.DestinationKey, RawValue: []byte(choices)},
		{Key: "x-envoy-retry-on", RawValue: []byte(strings.Join(conditions, ","))},
		{Key: "x-envoy-max-retries", RawValue: []byte(strconv.Itoa(retry.Attempts))},
	} {
		mutation.SetHeaders = append(mutation.SetHeaders, &corev3.HeaderValueOption{
			Header: header, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return &extprocv3.CommonResponse{HeaderMutation: &mutation},
		&structpb.Struct{Fields: map[string]*structpb.Value{
			extproc.DestinationNamespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
				extproc.DestinationKey: structpb.NewStringValue(choices),
			}}),
		}}
}

// Process implements the ext_proc service. The stream stays open to the response's
// end, as warmpath's does.
func (p *processor) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil
		}
		if r := p.answer(m); r != nil {
			if err := stream.Send(r); err != nil {
				return nil
			}
		}
	}
}

func (p *processor) answer(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		if p.body && !r.RequestHeaders.GetEndOfStream() && fits(r.RequestHeaders) {
			return askForBody
		}
		return p.take(p.toHeaders)
	case *extprocv3.ProcessingRequest_RequestBody:
		return p.take(p.toBody)
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return passResponseHeaders
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return passResponseTrailers
	default:
		return nil
	}
}

func (p *processor) take(decisions []*extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	return decisions[p.next.Add(1)%uint64(len(decisions))]
}

// fits tells whether Envoy can buffer the body.
func fits(headers *extprocv3.HttpHeaders) bool {
	for _, h := range headers.GetHeaders().GetHeaders() {
		if h.GetKey() == "content-length" {
			n, err := strconv.Atoi(string(h.GetRawValue()))
			return err == nil && n <= envoy.BodyLimit
		}
	}
	return false
}

var (
	askForBody = &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}},
		ModeOverride: &extprocfilterv3.ProcessingMode{
			RequestBodyMode:     extprocfilterv3.ProcessingMode_BUFFERED,
			ResponseHeaderMode:  extprocfilterv3.ProcessingMode_SEND,
			ResponseTrailerMode: extprocfilterv3.ProcessingMode_SEND,
		},
	}
	passResponseHeaders = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{},
	}}
	passResponseTrailers = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extprocv3.TrailersResponse{},
	}}
)
