package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// The strategy changes 50 times while requests run: none fails, each change is
// taken at once, streams that run across all of them stay counted, and nothing
// is left behind.
func TestReloadUnderLoad(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4})
	tr := startTraffic(t, s, 3)
	tr.more(t, s, 50)
	goroutines := metric(t, s, "go_goroutines")
	open, _ := holdOpen(t, s, chat(strings.Repeat("A stream across all changes. ", 60), "q", true), 6)
	for change := range 50 {
		config := []stack.Config{
			{Strategy: "LEAST_OUTSTANDING_REQUESTS"},
			prefixAware(1 + change),
			{Strategy: "RANDOM"},
			{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength},
			{Strategy: "KV_AWARE"},
		}[change%5]
		before, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatalf("change %d to %s: %v", change, config.Strategy, err)
		}
		after, err := s.Status(t.Context())
		if err != nil || after.Config.Generation != before.Config.Generation+1 || after.Config.Strategy != config.Strategy || after.Config.Error != "" {
			t.Errorf("change %d to %s: status says %+v (%v)", change, config.Strategy, after.Config, err)
		}
		tr.more(t, s, 10) // those that began before the change are decided now
		decided := decisions(t, s)
		tr.more(t, s, 10)
		for strategy, n := range decisions(t, s) {
			if n -= decided[strategy]; (n > 0) != (strategy == config.Strategy) {
				t.Errorf("change %d to %s: %v decisions after it were %s", change, config.Strategy, n, strategy)
			}
		}
	}
	tr.end()
	truthAgrees(t, s)
	if n := metric(t, s, "warmpath_requests_in_flight"); n != 6 {
		t.Errorf("%v requests in flight, 6 streams are open", n)
	}
	open.close()
	atRest(t, s)
	noMisses(t, s)
	// A leak would be at least one for each change.
	if err := s.Await(t.Context(), "as many goroutines as before", func() error {
		if n := metric(t, s, "go_goroutines"); n > goroutines+20 {
			return fmt.Errorf("%v, before there were %v", n, goroutines)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n := tr.failed.Load(); n != 0 || tr.sent.Load() < 500 {
		t.Errorf("%d of %d requests failed", n, tr.sent.Load())
	}
}

// metric returns a metric of warmpath's.
func metric(t *testing.T, s *stack.Stack, name string, labels ...string) float64 {
	t.Helper()
	n, err := s.Metric(t.Context(), name, labels...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// decisions counts the decisions of each strategy.
func decisions(t *testing.T, s *stack.Stack) map[string]float64 {
	t.Helper()
	counts := make(map[string]float64)
	for _, strategy := range []string{"RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE", "KV_AWARE"} {
		counts[strategy] = metric(t, s, "warmpath_decisions_total", fmt.Sprintf("strategy=%q", strategy))
	}
	return counts
}

// steering are the headers by which a client might have its way with Envoy. It
// obeys most of them only from inside its own network, which x-forwarded-for can
// pretend.
func steering() http.Header {
	return http.Header{
		"X-Forwarded-For":                          {"10.0.0.1"},
		"X-Envoy-Retry-On":                         {"5xx,gateway-error,retriable-status-codes,retriable-headers"},
		"X-Envoy-Retry-Grpc-On":                    {"cancelled,unavailable"},
		"X-Envoy-Max-Retries":                      {"9"},
		"X-Envoy-Retriable-Status-Codes":           {"503"},
		"X-Envoy-Retriable-Header-Names":           {"x-replica"},
		"X-Envoy-Upstream-Rq-Timeout-Ms":           {"50"},
		"X-Envoy-Upstream-Rq-Per-Try-Timeout-Ms":   {"50"},
		"X-Envoy-Upstream-Stream-Duration-Ms":      {"50"},
		"X-Envoy-Upstream-Rq-Timeout-Alt-Response": {"1"},
		"X-Envoy-Hedge-On-Per-Try-Timeout":         {"true"},
	}
}

// A client's headers change neither how often nor how long Envoy tries, nor where,
// whether warmpath decides, is switched off for the route, or is dead.
func TestClientHasNoSayInRetriesAndTimeouts(t *testing.T) {
	disabled := disabledRoute(t, "")
	const at = "          server_header_transformation: PASS_THROUGH\n"
	trusting := testenv.Replace(t, at, at+"          internal_address_config: {cidr_ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}\n")
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 5, Config: prefixAware(0), Bootstrap: testenv.InOrder(disabled, trusting),
	})
	x := &steerer{stack: s, clients: map[int]*http.Client{1: clientOf(t, 1), 2: clientOf(t, 2)}}
	t.Run("decided", func(t *testing.T) { x.steer(t, "/v1/chat/completions") })
	t.Run("switched off", func(t *testing.T) { x.steer(t, "/disabled/v1/chat/completions") })
	noMisses(t, s)
	s.Warmpath.Kill()
	t.Run("failed open", func(t *testing.T) { x.steer(t, "/v1/chat/completions") })
	for _, r := range s.Replicas.Replicas() {
		for _, record := range r.Requests() {
			for _, name := range record.HeaderNames {
				if name == "x-gateway-destination-endpoint" || name != "x-forwarded-for" && steering().Get(name) != "" {
					t.Fatalf("a replica saw the client's %s", name)
				}
			}
		}
	}
}

// steerer is a client that tries to have its way.
type steerer struct {
	stack   *stack.Stack
	clients map[int]*http.Client // by major version of HTTP
	sent    int
}

// steer sends requests that a server would fail or take long over, and names each
// server as the one it wants.
func (x *steerer) steer(t *testing.T, path string) {
	served := make(map[string]int)
	for major := range x.clients {
		for _, wanted := range x.stack.Replicas.Addresses() {
			served[x.send(t, major, path, wanted, 503, "x-replica-status", "503")]++
			served[x.send(t, major, path, wanted, 200, "x-replica-delay-ms", "150")]++
		}
	}
	if len(served) != 1 {
		t.Errorf("the client had a say in where its requests went: %v", served)
	}
}

// send sends one request and returns who served it. It must arrive once.
func (x *steerer) send(t *testing.T, major int, path, wanted string, status int, headers ...string) string {
	t.Helper()
	x.sent++
	id := fmt.Sprintf("request %d", x.sent)
	body := chat(strings.Repeat("Prefix. ", 200), "q", false)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.stack.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = steering()
	// With a tenant the fallback policy has something to hash: one server for all.
	for _, h := range [][2]string{{"content-type", "application/json"}, {"x-amzn-sagemaker-prefix-aware-id", "tenant-a"}, {"x-request-id", id}, {headers[0], headers[1]}} {
		request.Header.Set(h[0], h[1])
	}
	// Twice, and in a spelling of its own where HTTP allows one.
	request.Header["X-GATEWAY-destination-endpoint"] = []string{wanted, wanted}
	r, text, err := exchangeWith(x.clients[major], request)
	if err != nil || r.StatusCode != status {
		t.Fatalf("HTTP/%d, %s: %v, status %d, want %d: %.200s", major, headers, err, r.StatusCode, status, text)
	}
	arrivedOnce(t, x.stack, r.Header.Get("x-replica"), id, body)
	return r.Header.Get("x-replica")
}
