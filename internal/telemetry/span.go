package telemetry

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/warmpath/warmpath/extproc"
)

// SpanName is the name of the span of one decision.
const SpanName = "warmpath.decide"

// spans makes a span of every decision.
type spans struct{ tracer trace.Tracer }

// decided records the decision as a span from the request's headers to the
// choice. It does not last until the response ends: Envoy has a span for that.
//
// A caller that is not sampled is followed before a span is made, as the sampler
// would follow it: most requests are such, and a span that nobody gets costs as
// much again as reading the caller's context.
func (s spans) decided(r *extproc.Record) {
	ctx := parent(r)
	if caller := trace.SpanContextFromContext(ctx); caller.IsValid() && !caller.IsSampled() {
		return
	}
	_, span := s.tracer.Start(ctx, SpanName, trace.WithTimestamp(r.Began))
	if span.IsRecording() {
		span.SetAttributes(attributes(r)...)
	}
	span.End(trace.WithTimestamp(r.Decided))
}

// parent finds the span that the decision belongs under. Envoy's own span
// context is in the metadata of the gRPC stream; the request's header carries
// the client's, which is all there is when Envoy does not trace. Where the two
// disagree on sampling Envoy is followed: its random_sampling may have overruled
// the client. With emit_client_span: false Envoy calls a sampled trace unsampled
// in the metadata, which looks just the same; the decision's span is lost then.
func parent(r *extproc.Record) context.Context {
	var w3c propagation.TraceContext
	ctx := w3c.Extract(r.Context, streamCarrier{r.Context})
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return w3c.Extract(r.Context, propagation.MapCarrier{"traceparent": r.TraceParent, "tracestate": r.TraceState})
}

// streamCarrier reads the metadata of a gRPC stream by its context, without a
// copy of all of it.
type streamCarrier struct{ stream context.Context }

// Get implements propagation.TextMapCarrier.
func (c streamCarrier) Get(key string) string {
	return strings.Join(metadata.ValueFromIncomingContext(c.stream, key), ",")
}

// Set implements propagation.TextMapCarrier.
func (streamCarrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (streamCarrier) Keys() []string { return nil }

// attributes describes a decision. All of them are the program's own words,
// numbers and hashes but for model, adapter and request id, which are cut.
func attributes(r *extproc.Record) []attribute.KeyValue {
	d := &r.Decision
	list := []attribute.KeyValue{
		attribute.String("warmpath.strategy", d.Strategy.String()),
		attribute.String("warmpath.reason", d.Reason.String()),
		attribute.String("warmpath.api", r.API.String()),
		attribute.String("warmpath.chosen", d.Chosen),
		attribute.StringSlice("warmpath.homes", d.Homes()),
		attribute.StringSlice("warmpath.choices", d.Choices()),
		attribute.Int("warmpath.rank", d.Rank),
		attribute.Int64("warmpath.load.chosen", d.Load),
		attribute.Int64("warmpath.load.home", d.HomeLoad),
		attribute.Int64("warmpath.bound", d.Bound),
		attribute.Int("warmpath.candidates", d.Candidates),
		attribute.String("warmpath.membership", fmt.Sprintf("%016x", d.Membership)),
		attribute.Int("warmpath.config_generation", r.Generation),
		attribute.Bool("warmpath.tenant", r.HasTenant),
		attribute.Int64("warmpath.body_bytes", r.BodyBytes),
		attribute.Int("warmpath.prompt_chars", r.PromptChars),
	}
	if d.Keyed {
		list = append(list,
			attribute.String("warmpath.key", fmt.Sprintf("%016x", d.Key)),
			attribute.Int("warmpath.key_chars", r.KeyChars))
	}
	if d.HomeCount > 0 {
		list = append(list,
			attribute.Int("warmpath.depth_chars", d.Depth),
			attribute.Float64("warmpath.share", d.Share),
			attribute.Int("warmpath.home_count", d.HomeCount))
	}
	if d.WarmKnown() {
		list = append(list, attribute.Int("warmpath.warm_chars", d.Warm))
	}
	if d.AdapterSet > 0 {
		list = append(list, attribute.Int("warmpath.adapter_set", d.AdapterSet))
	}
	for _, optional := range []struct{ key, value string }{
		{"warmpath.policy_origin", r.PolicyOrigin},
		{"warmpath.pool", r.Pool},
		{"warmpath.model", r.Model},
		{"warmpath.adapter", r.Adapter},
		{"warmpath.request_id", r.RequestID},
	} {
		if optional.value != "" {
			list = append(list, attribute.String(optional.key, optional.value))
		}
	}
	if len(r.Problems) > 0 {
		names := make([]string, len(r.Problems))
		for i, p := range r.Problems {
			names[i] = p.String()
		}
		list = append(list, attribute.StringSlice("warmpath.problems", names))
	}
	return list
}
