//go:build istio

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// slowest is how long a busy machine may take to start an istiod.
const slowest = time.Minute

// noRejects fails the test if Envoy has refused anything.
func noRejects(t *testing.T, m *mesh, s *stack.Stack) {
	t.Helper()
	if refused := m.rejects(s); refused != "" {
		t.Errorf("Envoy refused something of istiod's:\n%s", refused)
	}
}

// TestIstio routes by what the real istiod makes of istio.yaml.
func TestIstio(t *testing.T) {
	var m mesh
	s := m.start(t, 3)
	noRejects(t, &m, s)
	istioConfigured(t, s)
	listeners, err := s.EnvoyAdmin(t.Context(), "/config_dump?resource=dynamic_listeners")
	if err != nil || bytes.Count(listeners, []byte(`"remove": "x-envoy-retry-on"`)) != 1 {
		t.Errorf("the listener does not remove a client's headers early (%v):\n%s", err, listeners)
	}
	istioHomes(t, s)
	istioStreams(t, s)
	istioBodies(t, s)
	istioRetries(t, s)
	noMisses(t, s)
	atRest(t, s)
	istioClientCannotSteer(t, s)
	noRejects(t, &m, s)
}

// istioConfigured looks into what Envoy has.
func istioConfigured(t *testing.T, s *stack.Stack) {
	t.Helper()
	dump, err := s.EnvoyAdmin(t.Context(), "/config_dump?resource=dynamic_route_configs")
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Configs []struct {
			Config struct {
				Hosts []struct {
					Routes []map[string]any
				} `json:"virtual_hosts"`
			} `json:"route_config"`
		}
	}
	if err := json.Unmarshal(dump, &found); err != nil {
		t.Fatal(err)
	}
	routes := 0
	for _, c := range found.Configs {
		for _, h := range c.Config.Hosts {
			for _, r := range h.Routes {
				if r["name"] != envoy.IstioRoute {
					continue
				}
				routes++
				action := r["route"].(map[string]any)
				if action["retry_policy"] != nil || action["cluster"] != models || action["timeout"] != "0s" || action["hash_policy"] == nil ||
					r["request_body_buffer_limit"] != fmt.Sprint(envoy.BodyLimit) || r["typed_per_filter_config"].(map[string]any)[envoy.ExtProcFilter] == nil {
					t.Errorf("route %v", r)
				}
			}
		}
	}
	if routes != 1 {
		t.Errorf("%d routes have the name %s, want 1: %s", routes, envoy.IstioRoute, dump)
	}
}

// istioHomes: what is decided is what is served, and each pod is the home of some.
func istioHomes(t *testing.T, s *stack.Stack) {
	t.Helper()
	homes := make(map[string]int)
	for p := range 30 {
		system := strings.Repeat(fmt.Sprintf("Rule %d of the workshop. ", p), 60)
		want := homesOf(t, s, "/v1/chat/completions", chat(system, "q", false))[0]
		homes[want]++
		for u := range 3 {
			got, err := served(t.Context(), s, "/v1/chat/completions", chat(system, fmt.Sprintf("question %d", u), u%2 == 0))
			if err != nil || got != want {
				t.Errorf("prefix %d use %d: served by %s (%v), home is %s", p, u, got, err, want)
			}
		}
	}
	if len(homes) != 3 {
		t.Errorf("30 prefixes have the homes %v, want all 3 pods", homes)
	}
}

// istioStreams: a response is counted and passed on while it runs.
func istioStreams(t *testing.T, s *stack.Stack) {
	t.Helper()
	open, _ := holdOpen(t, s, chat(strings.Repeat("A held stream. ", 80), "q", true), 2)
	truthAgrees(t, s)
	first := make([]byte, 6)
	if _, err := io.ReadFull(open.responses[0].Body, first); err != nil || string(first) != "data: " {
		t.Errorf("while it is held: %q, %v", first, err)
	}
	s.Replicas.Release()
	for _, r := range open.responses {
		if text := readAll(t, r); !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("a stream ends %q", text[max(0, len(text)-60):])
		}
	}
	atRest(t, s)
}

// istioBodies: bodies of all sizes arrive whole, those that fit at their home.
func istioBodies(t *testing.T, s *stack.Stack) {
	t.Helper()
	for _, size := range []int{64 << 10, 1 << 20, envoy.BodyLimit - 1<<10, envoy.BodyLimit + 256<<10} {
		body := chat(fmt.Sprintf("%d bytes. ", size)+strings.Repeat("x", size-200), "q", false)
		got, err := served(t.Context(), s, "/v1/chat/completions", body)
		if err != nil {
			t.Errorf("body of %d bytes: %v", len(body), err)
			continue
		}
		if len(body) <= envoy.BodyLimit {
			if want := homesOf(t, s, "/v1/chat/completions", body)[0]; got != want {
				t.Errorf("body of %d bytes at %s, home is %s", len(body), got, want)
			}
		}
		records := s.Replicas.Replica(got).Requests()
		if last := records[len(records)-1]; last.Body.Length != int64(len(body)) {
			t.Errorf("body of %d bytes arrived as %d", len(body), last.Body.Length)
		}
	}
}

// istioRetries: the route has no retries of its own, and a request whose home has
// just died goes to its second home all the same.
func istioRetries(t *testing.T, s *stack.Stack) {
	t.Helper()
	body := chat(strings.Repeat("Its home dies. ", 80), "q", false)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	if err := s.Replicas.Stop(homes[0]); err != nil {
		t.Fatal(err)
	}
	// Sooner than a probe can tell, and later.
	for range 10 {
		if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homes[1] {
			t.Errorf("served by %s (%v), the second home is %s", got, err, homes[1])
		}
	}
	if err := s.Replicas.Restart(homes[0]); err != nil {
		t.Fatal(err)
	}
	endpointIs(t, s, homes[0], "healthy")
}

// istioClientCannotSteer: whatever a client sends, it chooses no pod; with warmpath
// gone, too, and then requests are served still.
func istioClientCannotSteer(t *testing.T, s *stack.Stack) {
	t.Helper()
	body := chat(strings.Repeat("Prefix. ", 200), "q", false)
	tenant := []string{"x-amzn-sagemaker-prefix-aware-id", "tenant-a"}
	home := homesOf(t, s, "/v1/chat/completions", body, tenant...)[0]
	steer := func() map[string]int {
		counts := make(map[string]int)
		for _, target := range s.Replicas.Addresses() {
			for _, value := range []string{target, target + "," + target, "169.254.169.254:80"} {
				got, err := served(t.Context(), s, "/v1/chat/completions", body, append(tenant,
					"x-gateway-destination-endpoint", value, "x-envoy-retry-on", "5xx", "x-envoy-max-retries", "9")...)
				if err != nil {
					t.Errorf("steering at %s: %v", value, err)
				}
				counts[got]++
			}
		}
		return counts
	}
	if counts := steer(); len(counts) != 1 || counts[home] == 0 {
		t.Errorf("steered requests went to %v, the home is %s", counts, home)
	}
	s.Warmpath.Kill()
	if counts := steer(); len(counts) != 1 {
		t.Errorf("without warmpath the header chose: %v", counts)
	}
	// Nor does it switch on retries, from whatever network it comes.
	before := started(s)
	response, err := post(t.Context(), s, "/v1/chat/completions", body, "x-replica-status", "503", "x-envoy-retry-on", "5xx", "x-envoy-max-retries", "3")
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, response)
	if n := started(s) - before; response.StatusCode != http.StatusServiceUnavailable || n != 1 {
		t.Errorf("%s after %d attempts, want 503 after 1", response.Status, n)
	}
	for _, r := range s.Replicas.Replicas() {
		for _, record := range r.Requests() {
			for _, name := range record.HeaderNames {
				if name == "x-gateway-destination-endpoint" || strings.HasPrefix(name, "x-envoy-retry") || name == "x-envoy-max-retries" {
					t.Fatalf("a replica saw the header %s", name)
				}
			}
		}
	}
}

// started is how many requests the replicas have got.
func started(s *stack.Stack) (n int64) {
	for _, r := range s.Replicas.Stats() {
		n += r.Started
	}
	return n
}

// TestIstioPods plays what pods do: those that are not ready or end get nothing
// new, and what they have begun they finish. Their Service is headless, as many are.
func TestIstioPods(t *testing.T) {
	m := mesh{change: testenv.Replace(t, "  selector: {app: llama}\n", "  selector: {app: llama}\n  clusterIP: None\n")}
	s := m.start(t, 3)
	istioPods(t, s, &m)
	noRejects(t, &m, s)
}

// istioPods lets the 3 pods of a cluster come and go.
func istioPods(t *testing.T, s *stack.Stack, c cluster) {
	t.Helper()
	addresses := s.Replicas.Addresses()
	tr := startTraffic(t, s, 3)
	tr.more(t, s, 50)
	idle := func(i int, why string) {
		t.Helper()
		tr.spares(t, s, addresses[i], why)
	}
	c.ready(1, false)
	endpointIs(t, s, addresses[1], "unhealthy")
	idle(1, "is not ready")
	c.ready(1, true)
	endpointIs(t, s, addresses[1], "healthy")
	tr.end()
	noMisses(t, s)

	body := chat(strings.Repeat("Stream on a pod that ends. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	open, counts := holdOpen(t, s, body, 2)
	if counts[home] != 2 {
		t.Fatalf("streams at %v, home is %s", counts, home)
	}
	ending := 0
	for i, a := range addresses {
		if a == home {
			ending = i
		}
	}
	tr = startTraffic(t, s, 3)
	c.terminate(ending)
	envoyHas(t, s, 2)
	idle(ending, "is terminating")
	tr.end()
	s.Replicas.Release()
	for _, r := range open.responses {
		if text := readAll(t, r); !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("a stream was cut: it ends %q", text[max(0, len(text)-60):])
		}
	}
	noMisses(t, s)
	c.remove(ending)
	c.add(ending)
	envoyHas(t, s, 3)
	endpointIs(t, s, home, "healthy")
	if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != home {
		t.Errorf("a pod that is back: served by %s (%v), home is %s", got, err, home)
	}
	atRest(t, s)
}
