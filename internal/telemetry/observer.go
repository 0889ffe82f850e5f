package telemetry

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/extproc"
)

// Observer turns the events of requests into metrics and spans.
type Observer struct {
	// Log is told of recovered panics; nil is silent. It is set before use.
	Log *slog.Logger

	metrics *Metrics
	spans   *spans // nil when nothing is traced
}

var _ extproc.Observer = (*Observer)(nil)

// NewObserver returns an observer; provider is nil when nothing is traced.
func NewObserver(metrics *Metrics, provider trace.TracerProvider) *Observer {
	o := &Observer{metrics: metrics}
	if provider != nil {
		o.spans = &spans{provider.Tracer("github.com/warmpath/warmpath")}
	}
	return o
}

// Decided implements extproc.Observer.
func (o *Observer) Decided(r *extproc.Record) {
	o.metrics.decided(r)
	if o.spans != nil {
		o.spans.decided(r)
	}
}

// Served implements extproc.Observer.
func (o *Observer) Served(r *extproc.Record) { o.metrics.served(r) }

// Ended implements extproc.Observer.
func (o *Observer) Ended(r *extproc.Record) { o.metrics.ended(r) }

// Panicked implements extproc.Observer.
func (o *Observer) Panicked(_ *extproc.Record, stack []byte) {
	o.metrics.panicked()
	if o.Log != nil {
		o.Log.Error("recovered from a defect; the request went on without a decision of ours", "stack", string(stack))
	}
}

// NewTracerProvider exports spans over OTLP/gRPC to endpoint, "host:port". Who
// is traced is decided by the caller's trace context; where there is none, a
// share of the requests by rootRatio, 0 to 1. Exporting runs in the background
// and drops spans rather than hold requests up.
func NewTracerProvider(ctx context.Context, endpoint string, insecure bool, rootRatio float64, version string) (*sdktrace.TracerProvider, error) {
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(endpoint)}
	if insecure {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("export traces to %q: %w", endpoint, err)
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sampler(rootRatio)),
		sdktrace.WithResource(resource.NewSchemaless(
			semconv.ServiceName("warmpath"), semconv.ServiceVersion(version))),
	), nil
}

// sampler follows the caller's decision and makes one for a share of the
// requests that come without.
func sampler(rootRatio float64) sdktrace.Sampler {
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(rootRatio))
}
