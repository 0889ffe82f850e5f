//go:build istio

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

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
