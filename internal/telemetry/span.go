package telemetry

import (
	"context"
	"strings"

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
