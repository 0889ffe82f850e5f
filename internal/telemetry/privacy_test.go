package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

// request is a stream of messages whose answers nobody wants.
type request struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
}

func (r *request) Context() context.Context                 { return r.ctx }
func (r *request) Send(*extprocv3.ProcessingResponse) error { return nil }

func (r *request) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(r.messages) == 0 {
		return nil, io.EOF
	}
	m := r.messages[0]
	r.messages = r.messages[1:]
	return m, nil
}

func headers(pairs ...string) *extprocv3.ProcessingRequest {
	h := new(corev3.HeaderMap)
	for i := 0; i < len(pairs); i += 2 {
		h.Headers = append(h.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: h}}}
}

func body(text string) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: true},
	}}
}

// The words of a prompt, a tenant and a secret header go through the whole
// program, in good order and through a defect, and come out nowhere: not in a
// span, a metric or the log.
func TestNoPromptTextComesOut(t *testing.T) {
	const canary = "CANARY-7f3a"
	var log strings.Builder
	level := new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	router := newRouter(t, route.PrefixAware, 3)
	metrics := NewMetrics(router.Loads())
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	observer := NewObserver(metrics, provider)
	observer.Log = NewLogger(&log, "json", level)

	random := func() uint64 { return 1 }
	settings := extproc.Settings{TenantHeader: "x-tenant-id", BodyLimit: 1 << 20}
	defect := func() uint64 { panic(canary) }
	for _, text := range []string{
		`{"model":"m","prompt_cache_key":"` + canary + `","messages":[{"role":"user","content":"` + canary + `"}]}`,
		canary, // no JSON
	} {
		for _, source := range []func() uint64{random, defect} {
			server := extproc.New(router, settings, observer, source)
			err := server.Process(&request{ctx: t.Context(), messages: []*extprocv3.ProcessingRequest{
				headers(":path", "/v1/chat/completions?"+canary, "content-length", "100",
					"x-tenant-id", canary, "authorization", canary, "traceparent", canary, "tracestate", canary+"=1"),
				body(text),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}

	page := httptest.NewRecorder()
	promhttp.HandlerFor(metrics.Registry(), promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	spans := exporter.GetSpans()
	if len(spans) != 2 || !strings.Contains(log.String(), "stack") {
		t.Errorf("%d spans and the log %q, want 2 and the stacks of 2 panics", len(spans), log.String())
	}
	for what, text := range map[string]string{
		"spans": fmt.Sprintf("%+v", spans), "metrics": page.Body.String(), "log": log.String(),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("the client's words are in the %s", what)
		}
	}
}
