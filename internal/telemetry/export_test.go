package telemetry

import (
	"context"
	"net"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
)

// collector is an OTLP collector that takes nothing until it is released.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	release chan struct{}
	asked   chan *collectorv1.ExportTraceServiceRequest
}

func (c *collector) Export(ctx context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	select {
	case c.asked <- r:
	default:
	}
	select {
	case <-c.release:
	case <-ctx.Done():
	}
	return new(collectorv1.ExportTraceServiceResponse), nil
}

// A collector that hangs holds no request up: spans beyond the exporter's queue
// are dropped. What arrives says which service sent it.
func TestSlowCollectorHoldsNothingUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sink := &collector{release: make(chan struct{}), asked: make(chan *collectorv1.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, sink)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	provider, err := NewTracerProvider(t.Context(), listener.Addr().String(), true, 1, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	o := NewObserver(NewMetrics(load.NewTracker()), provider)
	r, _ := record(t, newRouter(t, route.PrefixAware, 2), 42)
	for range 10_000 { // several times what the exporter queues
		o.Decided(r)
	}
	resource := make(map[string]string)
	for _, a := range (<-sink.asked).GetResourceSpans()[0].GetResource().GetAttributes() {
		resource[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if resource["service.name"] != "warmpath" || resource["service.version"] != "1.2.3" {
		t.Errorf("the spans come from %v", resource)
	}
	close(sink.release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
