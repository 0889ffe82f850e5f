package telemetry

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// traced returns an observer that follows the caller's sampling, with a share
// of the requests that have no caller, and where its spans go.
func traced(t testing.TB, ratio float64) (*Observer, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sampler(ratio)))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	return NewObserver(NewMetrics(load.NewTracker()), provider), exporter
}

const (
	clientTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	envoyTrace  = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-"
	otherTrace  = "00-11111111111111111111111111111111-2222222222222222-"
)

// Envoy's context in the gRPC metadata comes before the client's in the header;
// what neither has is a new trace.
func TestSpanParent(t *testing.T) {
	for _, test := range []struct {
		name             string
		metadata, header string
		parent           string // "" = a trace of its own, "-" = no span
		ratio            float64
	}{
		{name: "client and Envoy", metadata: envoyTrace + "01", header: clientTrace + "01", parent: envoyTrace},
		{name: "Envoy alone", metadata: envoyTrace + "01", parent: envoyTrace},
		{name: "client alone, Envoy does not trace", header: clientTrace + "01", parent: clientTrace},
		{name: "neither", ratio: 1},
		{name: "neither, and no share for such", ratio: 0, parent: "-"},
		{name: "malformed header", header: "00-xyz", ratio: 1},
		{name: "malformed metadata, client's header", metadata: "00-xyz", header: clientTrace + "01", parent: clientTrace},
		{name: "huge header", header: strings.Repeat("0", 1<<20), ratio: 1},
		{name: "zero ids", header: "00-00000000000000000000000000000000-0000000000000000-01", ratio: 1},
		{name: "unsampled by Envoy", metadata: envoyTrace + "00", header: clientTrace + "01", ratio: 1, parent: "-"},
		{name: "unsampled by the client", header: clientTrace + "00", ratio: 1, parent: "-"},
		{name: "two traces", metadata: envoyTrace + "01", header: otherTrace + "01", parent: envoyTrace},
		{name: "sampled though the share is none", metadata: envoyTrace + "01", parent: envoyTrace},
	} {
		t.Run(test.name, func(t *testing.T) {
			observer, exporter := traced(t, test.ratio)
			r, _ := record(t, newRouter(t, route.PrefixAware, 2), 42)
			if test.metadata != "" {
				r.Context = metadata.NewIncomingContext(r.Context, metadata.Pairs("traceparent", test.metadata, "tracestate", "a=1"))
			}
			r.TraceParent = test.header
			observer.Decided(r)
			spans := exporter.GetSpans()
			if test.parent == "-" {
				if len(spans) != 0 {
					t.Errorf("%d spans, want none", len(spans))
				}
				return
			}
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			got, span := "", spans[0]
			if span.Parent.IsValid() {
				got = fmt.Sprintf("00-%s-%s-", span.Parent.TraceID(), span.Parent.SpanID())
			}
			if got != test.parent {
				t.Errorf("parent %q, want %q", got, test.parent)
			}
			if span.Parent.IsValid() && (span.SpanContext.TraceID() != span.Parent.TraceID() || !span.Parent.IsRemote()) {
				t.Errorf("the span left its trace: %v under %v", span.SpanContext.TraceID(), span.Parent)
			}
			if test.metadata == envoyTrace+"01" && span.SpanContext.TraceState().Get("a") != "1" {
				t.Errorf("tracestate %q is lost", span.SpanContext.TraceState())
			}
			if span.StartTime != r.Began || span.EndTime != r.Decided {
				t.Errorf("span from %v to %v, want %v to %v", span.StartTime, span.EndTime, r.Began, r.Decided)
			}
		})
	}
}

// Of the requests that come without a trace the share is traced that is asked for,
// and those that come with one count neither for nor against it.
func TestShareOfRoots(t *testing.T) {
	observer, exporter := traced(t, 0.25)
	r, _ := record(t, newRouter(t, route.PrefixAware, 2), 42)
	followed, unsampled := *r, *r
	followed.TraceParent, unsampled.TraceParent = clientTrace+"01", clientTrace+"00"
	const n = 2000
	for range n {
		observer.Decided(r)
		observer.Decided(&unsampled)
	}
	// 25 % of 2,000 is 500 with a deviation of 19.
	if got := len(exporter.GetSpans()); got < 380 || got > 620 {
		t.Errorf("%d of %d requests without a trace are traced, want about 500", got, n)
	}
	exporter.Reset()
	for range 100 {
		observer.Decided(&followed)
	}
	if got := len(exporter.GetSpans()); got != 100 {
		t.Errorf("%d of 100 sampled requests are traced", got)
	}
}

// A request that is not sampled costs a look at the caller's context: no span, and
// none of the attributes.
func TestUnsampledAllocations(t *testing.T) {
	observer, exporter := traced(t, 1)
	r, _ := record(t, newRouter(t, route.PrefixAware, 7), 42)
	r.Context = metadata.NewIncomingContext(r.Context, metadata.Pairs("traceparent", envoyTrace+"00"))
	r.TraceParent = clientTrace + "00"
	got := testing.AllocsPerRun(1000, func() { observer.spans.decided(r) })
	if got > 4 {
		t.Errorf("%v allocations, want at most 4", got)
	}
	if n := len(exporter.GetSpans()); n != 0 {
		t.Errorf("%d spans of unsampled requests", n)
	}
}

// TestSpanGolden pins names and values of the attributes: dashboards and saved
// searches depend on them. Rewrite with -rewrite.
func TestSpanGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/spans", func(t *testing.T, d *datadriven.TestData) string {
		router := newRouter(t, route.PrefixAware, 3)
		var r *extproc.Record
		for range map[string]int{"home": 1, "overflow": 2, "saturated": 4, "problems": 1, "none": 1}[d.Cmd] {
			r, _ = record(t, router, 42)
		}
		switch d.Cmd {
		case "problems":
			r.Problems = []extproc.Problem{extproc.BodyCut, extproc.InvalidTenant}
			r.HasTenant, r.RequestID, r.Model, r.Adapter = false, "", "", "sql-lora"
		case "none":
			r, _ = record(t, newRouter(t, route.PrefixAware, 0), 42)
		}
		observer, exporter := traced(t, 1)
		observer.Decided(r)
		var b strings.Builder
		for _, span := range exporter.GetSpans() {
			fmt.Fprintf(&b, "%s %s\n", span.Name, span.SpanKind)
			for _, a := range span.Attributes {
				fmt.Fprintf(&b, "%s = %s %s\n", a.Key, a.Value.Type(), a.Value.String())
			}
		}
		return b.String()
	})
}

// BenchmarkSpan is what tracing adds to a decision: nothing, an unsampled
// request, a sampled one.
func BenchmarkSpan(b *testing.B) {
	for _, test := range []struct{ name, flags string }{{"untraced", ""}, {"unsampled", "00"}, {"sampled", "01"}} {
		b.Run(test.name, func(b *testing.B) {
			provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler(1)))
			b.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(b.Context())) })
			o := NewObserver(NewMetrics(load.NewTracker()), nil)
			r, _ := record(b, newRouter(b, route.PrefixAware, 7), 42)
			if test.flags != "" {
				o = NewObserver(o.metrics, provider)
				r.Context = metadata.NewIncomingContext(r.Context, metadata.Pairs("traceparent", envoyTrace+test.flags))
			}
			b.ReportAllocs()
			for b.Loop() {
				o.Decided(r)
			}
		})
	}
}

// docs/TRACING.md has a row for every attribute and no other.
func TestAttributesAreDocumented(t *testing.T) {
	r, _ := record(t, newRouter(t, route.PrefixAware, 3), 42)
	r.PolicyOrigin, r.Pool, r.Model, r.Adapter, r.RequestID = "route_metadata", "small", "m", "a", "id"
	r.Problems = []extproc.Problem{extproc.BodyCut}
	r.Decision.HomeCount, r.Decision.AdapterSet = 1, 1
	r.Arm = trial.SplitArm
	page, err := os.ReadFile("../../docs/TRACING.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `(warmpath\\.[\\w.]+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = m[2]
	}
	types := map[attribute.Type]string{
		attribute.STRING: "string", attribute.STRINGSLICE: "strings", attribute.INT64: "int", attribute.FLOAT64: "float", attribute.BOOL: "bool",
	}
	for _, a := range attributes(r) {
		key, want := string(a.Key), types[a.Value.Type()]
		if got := documented[key]; got != want {
			t.Errorf("docs/TRACING.md has %s as %q, want %q", key, got, want)
		}
		delete(documented, key)
	}
	if len(documented) != 0 {
		t.Errorf("docs/TRACING.md has what no span has: %v", documented)
	}
}
