package extproc

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/internal/route"
)

// Where a decision travels: the metadata namespace and the key in it that the
// shipped cluster reads, and the header of the same name for gateways that can
// read only a header (Gateway API endpoint picker protocol, version 1.0.0).
const (
	DestinationNamespace = "envoy.lb"
	DestinationKey       = "x-gateway-destination-endpoint"
)

const (
	retryOnHeader    = "x-envoy-retry-on"
	maxRetriesHeader = "x-envoy-max-retries"
)

// answer is what Envoy is told in the response to one message, before it is
// put into the shape of the message's phase.
type answer struct {
	// choices are the endpoints to try in order; none leaves the choice to Envoy.
	choices [route.MaxChoices]string
	// decided marks the answer that carries the decision, even an empty one:
	// then a destination header of the client's own must not stand.
	decided bool
	// metadataOnly adds no header. steered says that the client sent the
	// destination header itself, which is taken out all the same.
	metadataOnly, steered bool
	// fleet is how many endpoints there were to choose from.
	fleet int
	// cluster is the pool's, if Envoy has to be told; forged says that the client sent
	// the header with which that is done.
	cluster string
	forged  bool
	// told is what is told of the decision, nil for nothing.
	told *structpb.Struct
	// retryOn and maxRetries switch Envoy's retries on for this request.
	retryOn, maxRetries string
	// bodyMode is the request body mode to change to.
	bodyMode    extprocfilterv3.ProcessingMode_BodySendMode
	setBodyMode bool
	// echo is a part of the body to hand back; nil leaves it with Envoy.
	echo *extprocv3.HttpBody
}

// destination is the list of the endpoints as it travels.
func (a answer) destination() string {
	n := 0
	for n < len(a.choices) && a.choices[n] != "" {
		n++
	}
	return strings.Join(a.choices[:n], ",")
}

// unchanged lets the message pass as it is.
var unchanged answer

// headersResponse answers a request_headers message.
func (a answer) headersResponse() *extprocv3.ProcessingResponse {
	r := &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extprocv3.HeadersResponse{Response: a.common()},
		},
		DynamicMetadata: a.metadata(),
	}
	if a.setBodyMode {
		// Envoy takes an override only if allowed_override_modes lists exactly
		// this combination; the response modes repeat what it is configured with.
		r.ModeOverride = &extprocfilterv3.ProcessingMode{
			RequestBodyMode:     a.bodyMode,
			ResponseHeaderMode:  extprocfilterv3.ProcessingMode_SEND,
			ResponseTrailerMode: extprocfilterv3.ProcessingMode_SEND,
		}
	}
	return r
}

// bodyResponse answers a request_body message.
func (a answer) bodyResponse() *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: a.common()},
		},
		DynamicMetadata: a.metadata(),
	}
}

func (a answer) common() *extprocv3.CommonResponse {
	mutation, body := a.mutation(), echo(a.echo)
	if mutation == nil && body == nil {
		return nil
	}
	// The route is chosen again by the pool's header.
	return &extprocv3.CommonResponse{HeaderMutation: mutation, BodyMutation: body, ClearRouteCache: a.decided && (a.cluster != "" || a.forged)}
}

// echo hands a part of a body back as it came. In the full duplex mode Envoy
// keeps no copy: what is not handed back is lost to the other side.
func echo(b *extprocv3.HttpBody) *extprocv3.BodyMutation {
	if b == nil {
		return nil
	}
	return &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_StreamedResponse{
		StreamedResponse: &extprocv3.StreamedBodyResponse{Body: b.GetBody(), EndOfStream: b.GetEndOfStream()},
	}}
}

func echoResponseBody(b *extprocv3.HttpBody) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: echo(b)}},
	}}
}

// mutation overwrites the headers that steer, so that a client's own values never
// stand beside or instead of the decision.
func (a answer) mutation() *extprocv3.HeaderMutation {
	if !a.decided {
		return nil
	}
	m := new(extprocv3.HeaderMutation)
	switch {
	case a.choices[0] != "" && !a.metadataOnly:
		m.SetHeaders = append(m.SetHeaders, overwrite(DestinationKey, a.destination()))
	case !a.metadataOnly || a.steered:
		m.RemoveHeaders = append(m.RemoveHeaders, DestinationKey)
	}
	switch {
	case a.cluster != "":
		m.SetHeaders = append(m.SetHeaders, overwrite(PoolHeader, a.cluster))
	case a.forged:
		m.RemoveHeaders = append(m.RemoveHeaders, PoolHeader)
	}
	if a.retryOn != "" && !a.metadataOnly {
		m.SetHeaders = append(m.SetHeaders, overwrite(retryOnHeader, a.retryOn), overwrite(maxRetriesHeader, a.maxRetries))
	}
	if len(m.SetHeaders)+len(m.RemoveHeaders) == 0 {
		return nil
	}
	return m
}

func overwrite(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func (a answer) metadata() *structpb.Struct {
	if a.choices[0] == "" && a.told == nil {
		return nil
	}
	namespaces := make(map[string]*structpb.Value, 2)
	if a.choices[0] != "" {
		namespaces[DestinationNamespace] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			DestinationKey: structpb.NewStringValue(a.destination()),
		}})
	}
	if a.told != nil {
		namespaces[DecisionNamespace] = structpb.NewStructValue(a.told)
	}
	return &structpb.Struct{Fields: namespaces}
}

// The answers to the phases after the decision never change anything, so one
// message of each serves all requests.
var (
	passResponseHeaders = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{},
	}}
	passResponseBody = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{},
	}}
	passRequestTrailers = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestTrailers{
		RequestTrailers: &extprocv3.TrailersResponse{},
	}}
	passResponseTrailers = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extprocv3.TrailersResponse{},
	}}
)
