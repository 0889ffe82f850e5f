package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/testenv"
)

// collector is an OTLP collector in this process.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string

	mu    sync.Mutex
	spans []*tracev1.Span
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: listener.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("collector: %v", err)
		}
	})
	return c
}

// Export implements the collector's service.
func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return new(collectorv1.ExportTraceServiceResponse), nil
}

// find returns the first span that matches, nil if there is none yet.
func (c *collector) find(matches func(*tracev1.Span) bool) *tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if matches(s) {
			return s
		}
	}
	return nil
}

// String lists the spans for a failed test.
func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, s := range c.spans {
		fmt.Fprintf(&b, "\n%x: %x under %x: %s %s", s.GetTraceId(), s.GetSpanId(), s.GetParentSpanId(), s.GetName(), attribute(s, "warmpath.request_id"))
	}
	return b.String()
}

// await waits for a span that matches.
func (c *collector) await(t *testing.T, s *stack.Stack, what string, matches func(*tracev1.Span) bool) (found *tracev1.Span) {
	t.Helper()
	if err := s.Await(t.Context(), what, func() error {
		if found = c.find(matches); found == nil {
			return fmt.Errorf("no such span among %s", c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// decision matches the span of the decision on one request.
func decision(requestID string) func(*tracev1.Span) bool {
	return func(s *tracev1.Span) bool {
		return s.GetName() == telemetry.SpanName && attribute(s, "warmpath.request_id") == requestID
	}
}

func inTrace(id string) func(*tracev1.Span) bool {
	return func(s *tracev1.Span) bool { return hex.EncodeToString(s.GetTraceId()) == id }
}

func withID(id []byte) func(*tracev1.Span) bool {
	return func(s *tracev1.Span) bool { return bytes.Equal(s.GetSpanId(), id) }
}

// attribute prints an attribute of a span, a list with commas.
func attribute(s *tracev1.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return printValue(a.GetValue())
		}
	}
	return ""
}

func printValue(v *commonv1.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonv1.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonv1.AnyValue_BoolValue:
		return fmt.Sprint(x.BoolValue)
	case *commonv1.AnyValue_ArrayValue:
		var list []string
		for _, e := range x.ArrayValue.GetValues() {
			list = append(list, printValue(e))
		}
		return strings.Join(list, ",")
	}
	return v.GetStringValue()
}

// withTracing has Envoy trace as examples/tracing does, and send each span at once.
func withTracing(collector string) func([]byte) ([]byte, error) {
	return func(config []byte) ([]byte, error) {
		return envoy.WithTracing(append(config, `
layered_runtime:
  layers:
  - name: static
    static_layer: {tracing: {opentelemetry: {min_flush_spans: 1, flush_interval_ms: 100}}}
`...), collector)
	}
}

// traceparent is a client's header for a trace of its own.
func traceparent(trace byte, flags string) (header, traceID, spanID string) {
	traceID, spanID = strings.Repeat(fmt.Sprintf("%02x", trace), 16), strings.Repeat(fmt.Sprintf("%02x", trace), 8)
	return "00-" + traceID + "-" + spanID + "-" + flags, traceID, spanID
}

// startTraced starts a stack that exports to a collector at once. Without bootstrap
// Envoy does not trace.
func startTraced(t *testing.T, bootstrap func(collector string) func([]byte) ([]byte, error)) (*stack.Stack, *collector) {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // milliseconds; warmpath inherits it
	c := startCollector(t)
	config := prefixAware(7)
	config.OTLPEndpoint, config.Extra = c.address, noHealth
	options := stack.Options{Replica: fast, Replicas: 3, Config: config}
	if bootstrap != nil {
		options.Bootstrap = bootstrap(c.address)
	}
	return testenv.Start(t, options), c
}

func mustServe(t *testing.T, s *stack.Stack, body []byte, headers ...string) string {
	t.Helper()
	address, err := served(t.Context(), s, "/v1/chat/completions", body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// The decision stands under Envoy's own span of the call to warmpath, which
// stands in the client's trace if there is one; and it says what was decided.
func TestDecisionInEnvoysTrace(t *testing.T) {
	s, c := startTraced(t, withTracing)
	body := chat(strings.Repeat("You are traced. ", 100), "q", false)

	header, traceID, spanID := traceparent(0xa1, "01")
	address := mustServe(t, s, body, "traceparent", header, "x-request-id", "sampled")
	span := c.await(t, s, "the decision in the client's trace", decision("sampled"))
	if got := hex.EncodeToString(span.GetTraceId()); got != traceID {
		t.Errorf("trace %s, the client's is %s", got, traceID)
	}
	call := c.await(t, s, "the decision's parent", withID(span.GetParentSpanId()))
	if call.GetKind() != tracev1.Span_SPAN_KIND_CLIENT || !strings.Contains(call.GetName(), "ext_proc") {
		t.Errorf("the decision stands under %s (%s), want Envoy's call of ext_proc", call.GetName(), call.GetKind())
	}
	ingress := c.await(t, s, "Envoy's span of the request", withID(call.GetParentSpanId()))
	if got := hex.EncodeToString(ingress.GetParentSpanId()); got != spanID {
		t.Errorf("Envoy's span stands under %s, the client's is %s", got, spanID)
	}
	upstream := c.await(t, s, "Envoy's span of the endpoint", func(s *tracev1.Span) bool {
		return bytes.Equal(s.GetParentSpanId(), ingress.GetSpanId()) && attribute(s, "upstream_cluster") == envoy.PoolCluster
	})
	if got := attribute(upstream, "upstream_address"); got != address {
		t.Errorf("Envoy's span names the endpoint %q, want %q", got, address)
	}
	homes := homesOf(t, s, "/v1/chat/completions", body)
	if got := attribute(ingress, "warmpath.choices"); got != strings.Join(homes, ",") {
		t.Errorf("Envoy's span has the choices %q, want %q", got, homes)
	}
	for key, want := range map[string]string{
		"warmpath.strategy": "PREFIX_AWARE", "warmpath.reason": "home", "warmpath.api": "chat",
		"warmpath.chosen": address, "warmpath.homes": strings.Join(homes, ","), "warmpath.rank": "0",
		"warmpath.bound": "7", "warmpath.model": "llama-70b", "warmpath.load.chosen": "0",
	} {
		if got := attribute(span, key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if key := attribute(span, "warmpath.key"); !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(key) {
		t.Errorf("warmpath.key = %q, want 16 hexadecimal digits", key)
	}

	mustServe(t, s, body, "x-request-id", "no client trace")
	span = c.await(t, s, "the decision in Envoy's trace", decision("no client trace"))
	if len(span.GetParentSpanId()) == 0 {
		t.Error("the decision is a trace of its own, want it in Envoy's")
	}
	c.await(t, s, "its parent", withID(span.GetParentSpanId()))

	unsampledIsNotExported(t, s, c, body)
}

// Each endpoint that Envoy tries has a span under that of the request, and what one
// found says so.
func TestRetryInEnvoysTrace(t *testing.T) {
	s, c := startTraced(t, withTracing)
	body := chat(strings.Repeat("You are traced. ", 100), "q", false)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	if err := s.Replicas.Stop(homes[0]); err != nil {
		t.Fatal(err)
	}
	header, traceID, _ := traceparent(0xa2, "01")
	mustServe(t, s, body, "traceparent", header, "x-request-id", "retried")
	span := c.await(t, s, "the decision", decision("retried"))
	if got := attribute(span, "warmpath.chosen"); got != homes[0] {
		t.Fatalf("chosen is %s, want the home %s", got, homes[0])
	}
	for flag, home := range map[string]string{"UF": homes[0], "-": homes[1]} {
		c.await(t, s, "the span of "+home+" with the flag "+flag, func(s *tracev1.Span) bool {
			return inTrace(traceID)(s) && s.GetKind() == tracev1.Span_SPAN_KIND_CLIENT &&
				attribute(s, "upstream_address") == home && attribute(s, "response_flags") == flag
		})
	}
}

// Of the requests without a client's trace Envoy samples the share that its sampler
// names, and warmpath has a span for just these; a client's own choice holds.
func TestShareOfTraces(t *testing.T) {
	quarter := func(collector string) func([]byte) ([]byte, error) {
		return testenv.InOrder(withTracing(collector),
			testenv.Replace(t, "sampling_percentage: {numerator: 100, denominator: HUNDRED}", "sampling_percentage: {numerator: 25, denominator: HUNDRED}"))
	}
	s, c := startTraced(t, quarter)
	body := chat(strings.Repeat("You are traced. ", 100), "q", false)
	const n = 200
	for i := range n {
		mustServe(t, s, body, "x-request-id", fmt.Sprint("share ", i))
	}
	unsampledIsNotExported(t, s, c, body)
	ingress, decided := make(map[string]bool), make(map[string]bool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		id := hex.EncodeToString(span.GetTraceId())
		switch {
		case span.GetName() == telemetry.SpanName:
			decided[id] = true
		case span.GetKind() == tracev1.Span_SPAN_KIND_SERVER:
			ingress[id] = true
		}
	}
	// 25 % of 200 is 50 with a deviation of 6; one more is the client's.
	if got := len(ingress); got < 15 || got > 95 || !maps.Equal(ingress, decided) {
		t.Errorf("of %d requests Envoy traced %d and warmpath %d, want the same, about 50", n, got, len(decided))
	}
}

// With emit_client_span: false Envoy tells warmpath that a sampled trace is not, which
// is why the shipped configuration warns of it: the request is served, its decision
// is not in the trace.
func TestNoDecisionWithoutEnvoysClientSpan(t *testing.T) {
	without := func(collector string) func([]byte) ([]byte, error) {
		const at = "              grpc_service: {envoy_grpc: {cluster_name: warmpath_ext_proc}}\n"
		return testenv.InOrder(withTracing(collector), testenv.Replace(t, at, at+"              emit_client_span: false\n"))
	}
	s, c := startTraced(t, without)
	body := chat(strings.Repeat("You are traced. ", 100), "q", false)
	for i := range 3 {
		header, traceID, _ := traceparent(byte(0xe0+i), "01")
		mustServe(t, s, body, "traceparent", header)
		c.await(t, s, "Envoy's span", inTrace(traceID))
	}
	if span := c.find(func(s *tracev1.Span) bool { return s.GetName() == telemetry.SpanName }); span != nil {
		t.Errorf("trace %x has a decision: Envoy has learned it, the warning is out of date", span.GetTraceId())
	}
}

// Where Envoy does not trace, the decision stands under the client's span.
func TestDecisionInClientsTrace(t *testing.T) {
	s, c := startTraced(t, nil)
	body := chat(strings.Repeat("You are traced. ", 100), "q", false)

	header, traceID, spanID := traceparent(0xb2, "01")
	mustServe(t, s, body, "traceparent", header, "x-request-id", "sampled")
	span := c.await(t, s, "the decision in the client's trace", decision("sampled"))
	if trace, parent := hex.EncodeToString(span.GetTraceId()), hex.EncodeToString(span.GetParentSpanId()); trace != traceID || parent != spanID {
		t.Errorf("the decision stands in trace %s under %s, want %s and %s", trace, parent, traceID, spanID)
	}
	for id, header := range map[string]string{"none": "", "malformed": "00-zz-1"} {
		mustServe(t, s, body, "traceparent", header, "x-request-id", id)
		span = c.await(t, s, "the decision without a trace", decision(id))
		if len(span.GetParentSpanId()) != 0 {
			t.Errorf("%s: the decision stands under %x, want a trace of its own", id, span.GetParentSpanId())
		}
	}
	unsampledIsNotExported(t, s, c, body)
}

// unsampledIsNotExported sends a request whose trace is not sampled, then one
// whose trace is: when the second has been exported, the first would have been.
func unsampledIsNotExported(t *testing.T, s *stack.Stack, c *collector, body []byte) {
	t.Helper()
	header, traceID, _ := traceparent(0xc3, "00")
	mustServe(t, s, body, "traceparent", header, "x-request-id", "unsampled")
	header, _, _ = traceparent(0xd4, "01")
	mustServe(t, s, body, "traceparent", header, "x-request-id", "after")
	c.await(t, s, "the sampled decision after", decision("after"))
	if span := c.find(inTrace(traceID)); span != nil {
		t.Errorf("the unsampled trace has a span %s", span.GetName())
	}
	if span := c.find(decision("unsampled")); span != nil {
		t.Errorf("an unsampled decision was exported in trace %x", span.GetTraceId())
	}
}
