// Package otlpsink receives OpenTelemetry spans over OTLP/gRPC and keeps them:
// a collector small enough for a test or a demonstration.
package otlpsink

import (
	"context"
	"net"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a received span with the name of the service that sent it.
type Span struct {
	*tracepb.Span
	Service string
}

// Attribute returns the value of an attribute, nil when it is not set.
func (s Span) Attribute(key string) *commonpb.AnyValue { return find(s.GetAttributes(), key) }

// Strings returns the value of an attribute that is a list of strings.
func (s Span) Strings(key string) []string {
	var list []string
	for _, v := range s.Attribute(key).GetArrayValue().GetValues() {
		list = append(list, v.GetStringValue())
	}
	return list
}

func find(attributes []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, a := range attributes {
		if a.GetKey() == key {
			return a.GetValue()
		}
	}
	return nil
}

// Sink is a running receiver. The spans it keeps are not bounded.
type Sink struct {
	collectorpb.UnimplementedTraceServiceServer

	listener net.Listener
	server   *grpc.Server

	mu    sync.Mutex
	spans []Span
}

// Start receives on a free port of the loopback interface.
func Start() (*Sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Sink{listener: listener, server: grpc.NewServer()}
	collectorpb.RegisterTraceServiceServer(s.server, s)
	go func() { _ = s.server.Serve(listener) }() // ends with Close
	return s, nil
}

// Address is where spans are to be sent, "host:port".
func (s *Sink) Address() string { return s.listener.Addr().String() }

// Close ends the receiver and its connections.
func (s *Sink) Close() { s.server.Stop() }

// Spans returns what has been received so far, in the order of arrival.
func (s *Sink) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Span(nil), s.spans...)
}

// Export implements the OTLP trace service.
func (s *Sink) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		service := find(resource.GetResource().GetAttributes(), "service.name").GetStringValue()
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans = append(s.spans, Span{Span: span, Service: service})
			}
		}
	}
	return new(collectorpb.ExportTraceServiceResponse), nil
}
