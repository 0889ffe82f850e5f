//go:build istio

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
		tr.more(t, s, 20) // what had been decided before has been sent
		before := s.Replicas.Replica(addresses[i]).Stats().Started
		tr.more(t, s, 150)
		if after := s.Replicas.Replica(addresses[i]).Stats().Started; after != before {
			t.Errorf("a pod that %s got %d new requests", why, after-before)
		}
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

// withCORS gives the route a corsPolicy, for which Istio makes its settings of
// filters anew.
const withCORS = `    retries: {attempts: 0}
    corsPolicy: {allowOrigins: [{exact: "https://example.com"}], allowMethods: [POST]}
`

// inferencePool is an InferencePool beside, whose filter Istio puts into every
// listener of the gateway.
const inferencePool = `---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: pools, namespace: istio-system}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: {port}, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: v1
kind: Service
metadata: {name: pools-istio, namespace: istio-system}
spec:
  selector: {gateway.networking.k8s.io/gateway-name: pools}
  ports: [{name: http, port: {port}, targetPort: {port}}]
---
apiVersion: v1
kind: Pod
metadata: {name: gateway-0, namespace: istio-system, labels: {istio: ingressgateway, gateway.networking.k8s.io/gateway-name: pools}}
status: {phase: Running, podIP: {ip}, podIPs: [{ip: {ip}}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: picker, namespace: llm}
spec:
  selector: {app: picker}
  ports: [{name: grpc, port: 9002, appProtocol: grpc}]
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: pool, namespace: llm}
spec:
  selector: {matchLabels: {app: other}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: picker, port: {number: 9002}, failureMode: FailOpen}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: pool, namespace: llm}
spec:
  parentRefs: [{name: pools, namespace: istio-system}]
  rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: pool}]}]
status:
  parents:
  - parentRef: {name: pools, namespace: istio-system}
    controllerName: istio.io/gateway-controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

// TestIstioBesideAnInferencePool: another filter for external processing in the
// same listener, and a corsPolicy on the route, leave one question a request.
func TestIstioBesideAnInferencePool(t *testing.T) {
	m := mesh{change: testenv.Replace(t, "    retries: {attempts: 0}\n", withCORS), more: inferencePool}
	s := m.start(t, 3)
	noRejects(t, &m, s)
	dump, err := s.EnvoyAdmin(t.Context(), "/config_dump?resource=dynamic_listeners")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(dump, []byte(`"name": "envoy.filters.http.ext_proc"`)); n == 0 {
		t.Fatalf("no listener has the filter of an InferencePool: %s", dump)
	}
	const filters = "/stats?usedonly&filter=ext_proc.(streams_started|failure_mode_allowed)"
	before := extProcStats(t, s, filters)
	const requests = 20
	for i := range requests {
		body := chat(strings.Repeat(fmt.Sprintf("Prefix %d beside a pool. ", i), 60), "q", false)
		response, err := post(t.Context(), s, "/v1/chat/completions", body, "origin", "https://example.com")
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, response)
		if want := homesOf(t, s, "/v1/chat/completions", body)[0]; response.StatusCode != http.StatusOK || response.Header.Get("x-replica") != want ||
			response.Header.Get("access-control-allow-origin") != "https://example.com" {
			t.Errorf("%s by %s, home is %s; headers %v", response.Status, response.Header.Get("x-replica"), want, response.Header)
		}
	}
	after := extProcStats(t, s, filters)
	if n := after["streams_started"] - before["streams_started"]; n != requests || after["failure_mode_allowed"] != before["failure_mode_allowed"] {
		t.Errorf("%d requests: %v before, %v after; want one stream each and no failure", requests, before, after)
	}
	// The other way round: warmpath is not asked about the pool's route.
	decided := metric(t, s, "warmpath_decisions_total")
	beside := *s
	beside.URL = s.URL[:strings.LastIndex(s.URL, ":")+1] + fmt.Sprint(m.morePort)
	response, err := post(t.Context(), &beside, "/v1/chat/completions", chat("beside", "q", false))
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, response)
	if now := metric(t, s, "warmpath_decisions_total"); response.StatusCode != http.StatusServiceUnavailable || now != decided {
		t.Errorf("the InferencePool's route answers %s, want 503 without pods; %v decisions by warmpath, want %v", response.Status, now, decided)
	}
	noMisses(t, s)
	atRest(t, s)
	noRejects(t, &m, s)
}

// extProcStats are the counters of Envoy's filters for external processing, all
// of one name added up.
func extProcStats(t *testing.T, s *stack.Stack, path string) map[string]int {
	t.Helper()
	text, err := s.EnvoyAdmin(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		var n int
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sums[name[strings.LastIndex(name, ".")+1:]] += n
	}
	return sums
}

// TestIstioRejectsAreSeen has a fault that Istio takes and Envoy does not: that the
// other tests see none means something.
func TestIstioRejectsAreSeen(t *testing.T) {
	m := mesh{mute: true, change: testenv.Replace(t, "message_timeout: 5s", "message_timeout: 3601s")}
	s := m.start(t, 1)
	refused := m.rejects(s)
	for _, want := range []string{"listener_manager.lds.update_rejected: ", `pilot_total_xds_rejects{type="lds"}`} {
		if !strings.Contains(refused, want) {
			t.Errorf("no %q in %q", want, refused)
		}
	}
}

// TestIstioObjectsAreChecked: what Istio's definitions forbid does not get as far as
// istiod.
func TestIstioObjectsAreChecked(t *testing.T) {
	folder, file := os.Getenv("ISTIOD"), filepath.Join(t.TempDir(), "objects.yaml")
	shipped, err := envoy.Istio(envoy.IstioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func([]byte) ([]byte, error){
		"must be a valid duration greater than 1ms": testenv.Replace(t, "    retries:", "    timeout: 0s\n    retries:"),
		"unknown fields": testenv.Replace(t, "localityLbSetting: {enabled: false}}\n    # No outlier", "localitySetting: {}}\n    # No outlier"),
	} {
		text, err := change(shipped)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), filepath.Join(folder, "istiod"), "-file", file, "-crds", filepath.Join(folder, "crds.yaml"))
		if out, err := command.CombinedOutput(); err == nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%v: want a refusal that says %q, got:\n%.1000s", err, want, out)
		}
	}
}
