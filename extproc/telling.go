package extproc

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/internal/trial"
)

// Where a decision is told of: as dynamic metadata, for Envoy's access log, and in a
// header of the response.
const (
	DecisionNamespace = "warmpath"
	DecisionHeader    = "x-warmpath-decision"
)

// facts are what is told of a decision: words and numbers of ours, nothing that a
// client has written.
func (r *Record) facts(text func(name, value string), number func(name string, value int64)) {
	d := &r.Decision
	text("strategy", d.Strategy.String())
	text("reason", d.Reason.String())
	if d.Chosen != "" {
		text("chosen", d.Chosen)
		number("load", d.Load)
	}
	if r.Pool != "" {
		text("pool", r.Pool)
	}
	if r.Arm != trial.NoArm {
		text("arm", r.Arm.String())
	}
	if d.Bound > 0 {
		number("bound", d.Bound)
	}
	if d.Keyed {
		text("key", fmt.Sprintf("%016x", d.Key))
		number("rank", int64(d.Rank))
		number("chars", int64(r.PromptChars))
	}
	if d.WarmKnown() {
		number("depth", int64(d.Depth))
		number("warm_chars", int64(min(d.Warm, r.PromptChars)))
	}
}

// decisionMetadata is the decision as dynamic metadata.
func (r *Record) decisionMetadata() *structpb.Struct {
	fields := make(map[string]*structpb.Value, 12)
	r.facts(
		func(name, value string) { fields[name] = structpb.NewStringValue(value) },
		func(name string, value int64) { fields[name] = structpb.NewNumberValue(float64(value)) },
	)
	return &structpb.Struct{Fields: fields}
}

// decisionText is the decision as the value of a header: name=value, separated by "; ".
func (r *Record) decisionText() string {
	var b strings.Builder
	add := func(name string, value any) {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s=%v", name, value)
	}
	r.facts(func(name, value string) { add(name, value) }, func(name string, value int64) { add(name, value) })
	return b.String()
}

// full reports whether there is little room for further headers.
func full(headers *corev3.HeaderMap) bool {
	size := 0
	for _, h := range headers.GetHeaders() {
		size += len(h.GetKey()) + len(h.GetRawValue()) + len(h.GetValue())
	}
	return len(headers.GetHeaders()) > roomyHeaders || size > roomyBytes
}

// withDecision adds the header to the answer to the response's headers, if it is told of.
// The answer itself serves all requests and is not changed. A response with hardly any
// room for headers gets none: Envoy would answer 500 in its place.
func (s *stream) withDecision(r *extprocv3.ProcessingResponse, m *extprocv3.HttpHeaders) *extprocv3.ProcessingResponse {
	if !s.settings.DecisionHeader || s.observed || full(m.GetHeaders()) {
		return r
	}
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{
			Response: &extprocv3.CommonResponse{HeaderMutation: &extprocv3.HeaderMutation{
				SetHeaders: []*corev3.HeaderValueOption{overwrite(DecisionHeader, s.record.decisionText())},
			}},
		}},
		ModeOverride: r.GetModeOverride(),
	}
}
