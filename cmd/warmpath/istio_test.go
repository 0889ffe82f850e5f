//go:build istio

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/kubeapi"
)

// gatewayBootstrap is what an ingress gateway's Envoy is started with: it has all
// but the address of istiod from there.
const gatewayBootstrap = `
node:
  id: router~{ip}~gateway-0.istio-system~istio-system.svc.cluster.local
  cluster: istio-ingressgateway.istio-system
  metadata:
    ISTIO_VERSION: 1.31.0
    NAMESPACE: istio-system
    CLUSTER_ID: Kubernetes
    LABELS: {istio: ingressgateway, gateway.networking.k8s.io/gateway-name: pools}
    INSTANCE_IPS: {ip}
admin:
  address: {socket_address: {address: {ip}, port_value: {admin}}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, set_node_on_first_message_only: true, grpc_services: [{envoy_grpc: {cluster_name: istiod}}]}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: istiod
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: istiod
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: {ip}, port_value: {xds}}}}}]}]
`

// models is what Istio calls the cluster of the model servers.
const models = "outbound|8000||llama.llm.svc.cluster.local"

// mesh is a cluster with Istio: a stand-in for the API server, by which warmpath
// learns of pods, an istiod that is told the same, and a gateway.
type mesh struct {
	*standIn
	t         *testing.T
	istiod    *stack.Process
	port      int // of the gateway
	xds, http string
	// change changes istio.yaml, and more are objects beside it, in which {port} is
	// morePort, one that is free, and {ip} the gateway's address.
	change   func([]byte) ([]byte, error)
	more     string
	morePort int
	mute     bool // nothing is to listen at the gateway
	dir      string
}

// start starts the mesh, as large a stack as the others have.
func (m *mesh) start(t *testing.T, replicas int) *stack.Stack {
	t.Helper()
	m.t, m.dir = t, t.TempDir()
	m.standIn = &standIn{Server: kubeapi.Start(t, "a-token"), gone: make(map[int]bool), slices: 1}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	configured := prefixAware(0)
	configured.Extra, configured.WithoutXDS = quickHealth, true
	var at envoy.Addresses
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: replicas, Config: configured, PoolCluster: models + ";",
		Membership: func(addresses []string) (string, error) {
			for _, a := range addresses {
				m.pods = append(m.pods, kubeapi.Endpoint{Address: a})
			}
			m.put(0)
			return fmt.Sprintf("kubernetes: {service: %s, namespace: %s, port: http, terminating: gone, apiServer: %q, tokenFile: %q, caFile: %q}",
				m.Service, m.Namespace, m.URL, token, m.CAFile), nil
		},
		// Ready before anybody asks: the Service has no endpoint until then.
		Started: func(ctx context.Context, s *stack.Stack) error { return s.AwaitRouting(ctx) },
		Between: func(a envoy.Addresses) (envoy.Addresses, error) {
			at = a
			return a, m.startIstiod(a)
		},
		Bootstrap: func([]byte) ([]byte, error) {
			return m.bootstrap(at), nil
		},
	})
	m.awaitRoutes(s, at)
	return s
}

// bootstrap is that of the gateway.
func (m *mesh) bootstrap(at envoy.Addresses) []byte {
	admin, xds := netip.MustParseAddrPort(at.Admin), netip.MustParseAddrPort(m.xds)
	return []byte(strings.NewReplacer("{ip}", admin.Addr().String(), "{admin}", fmt.Sprint(admin.Port()), "{xds}", fmt.Sprint(xds.Port())).
		Replace(gatewayBootstrap))
}

// awaitRoutes waits until the gateway routes, where clients find it from now on.
func (m *mesh) awaitRoutes(s *stack.Stack, at envoy.Addresses) {
	m.t.Helper()
	s.URL = fmt.Sprintf("http://%s:%d", netip.MustParseAddrPort(at.Listener).Addr(), m.port)
	if m.mute {
		return
	}
	if err := s.Await(m.t.Context(), "the gateway to route", func() error {
		_, err := get(s.URL + "/v1/models")
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
}

// startIstiod starts the istiod that $ISTIOD has in its folder, where Envoy's
// addresses are, and tells it of warmpath there and of the pods.
func (m *mesh) startIstiod(at envoy.Addresses) error {
	folder := os.Getenv("ISTIOD")
	if folder == "" {
		return fmt.Errorf("ISTIOD names no folder: run make test-istio")
	}
	host, err := m.choosePorts(at)
	if err != nil {
		return err
	}
	text, err := m.objects(host)
	if err != nil {
		return err
	}
	file := filepath.Join(m.dir, "objects.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if err := m.run("-file", file, "-crds", filepath.Join(folder, "crds.yaml"), "-xds", m.xds, "-http", m.http); err != nil {
		return err
	}
	if err := m.tell(slice("warmpath", "grpc-ext-proc", kubeapi.Endpoint{Address: at.ExtProc})); err != nil {
		return err
	}
	return m.tellPods()
}

// choosePorts takes free ones of the loopback address that Envoy has.
func (m *mesh) choosePorts(at envoy.Addresses) (host string, err error) {
	host = netip.MustParseAddrPort(at.Listener).Addr().String()
	for _, address := range []*string{&m.xds, &m.http} {
		port, err := stack.FreePort(host)
		if err != nil {
			return "", err
		}
		*address = fmt.Sprintf("%s:%d", host, port)
	}
	m.port, err = stack.FreePort(host)
	return host, err
}

// run starts istiod and waits until it answers.
func (m *mesh) run(arguments ...string) (err error) {
	m.istiod, err = stack.StartProcess("istiod", []string{
		// Plain Envoy has none of Istio's own filters.
		"PILOT_ENABLE_ALPN_FILTER=false", "PILOT_ENABLE_METADATA_EXCHANGE=false", "ENABLE_GATEWAY_API_INFERENCE_EXTENSION=true",
		"POD_NAME=istiod-0", "POD_NAMESPACE=istio-system", "CLUSTER_ID=Kubernetes",
	}, append([]string{filepath.Join(os.Getenv("ISTIOD"), "istiod")}, arguments...)...)
	if err != nil {
		return err
	}
	m.t.Cleanup(func() {
		m.istiod.Kill()
		if output := m.istiod.Output(); m.t.Failed() {
			m.t.Logf("istiod printed:\n%s", output[max(0, len(output)-4000):])
		}
	})
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	return m.istiod.Await(ctx, func() error { _, err := m.get("/metrics"); return err })
}

// objects are those of istio.yaml and more, as istiod gets them.
func (m *mesh) objects(host string) ([]byte, error) {
	text, err := envoy.Istio(envoy.IstioOptions{Host: "*", GatewayPort: m.port})
	if err != nil {
		return nil, err
	}
	changes := []func([]byte) ([]byte, error){
		// As patient as [testenv.Start] makes the bootstrap, and on the loopback network only.
		testenv.Replace(m.t, "message_timeout: 0.25s", "message_timeout: 5s"),
		testenv.Replace(m.t, "        - timeout: 0.3s\n", "        - timeout: 5s\n"),
		testenv.Replace(m.t, "name: http, protocol: HTTP}\n", "name: http, protocol: HTTP}\n    bind: "+host+"\n"),
	}
	if m.change != nil {
		changes = append(changes, m.change)
	}
	if m.morePort, err = stack.FreePort(host); err != nil {
		return nil, err
	}
	text, err = testenv.InOrder(changes...)(text)
	return append(text, strings.NewReplacer("{port}", fmt.Sprint(m.morePort), "{ip}", host).Replace(m.more)...), err
}

// slice is an EndpointSlice of a Service as the API server has it.
func slice(service, port string, endpoints ...kubeapi.Endpoint) object {
	list, number := make([]object, len(endpoints)), uint16(0)
	for i, e := range endpoints {
		address := netip.MustParseAddrPort(e.Address)
		number = address.Port()
		list[i] = object{
			"addresses":  []string{address.Addr().String()},
			"conditions": object{"ready": !e.NotReady && !e.Terminating, "serving": !e.NotReady, "terminating": e.Terminating},
		}
	}
	return object{
		"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
		"metadata":  object{"name": service + "-1", "namespace": "llm", "labels": object{"kubernetes.io/service-name": service}},
		"endpoints": list, "ports": []object{{"name": port, "port": number, "protocol": "TCP"}},
	}
}

func (m *mesh) tell(slice object) error {
	data, err := json.Marshal(slice)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPut, "http://"+m.http+"/slices", bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("istiod answers %s: %s (%v)", response.Status, text, err)
	}
	return nil
}

// tellPods tells istiod what the API server's stand-in has.
func (m *mesh) tellPods() error {
	var endpoints []kubeapi.Endpoint
	for i, e := range m.pods {
		if !m.gone[i] {
			endpoints = append(endpoints, e)
		}
	}
	return m.tell(slice("llama", "http", endpoints...))
}

// The methods of a cluster: what is changed at the stand-in is told to istiod.
func (m *mesh) add(i int)               { m.standIn.add(i); m.both() }
func (m *mesh) ready(i int, ready bool) { m.standIn.ready(i, ready); m.both() }
func (m *mesh) terminate(i int)         { m.standIn.terminate(i); m.both() }
func (m *mesh) remove(i int)            { m.standIn.remove(i); m.both() }

func (m *mesh) both() {
	m.t.Helper()
	if err := m.tellPods(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mesh) get(path string) (string, error) { return get("http://" + m.http + path) }

// get returns what is answered with 200.
func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, response.Status, text)
	}
	return string(text), err
}

// rejects is what Envoy refused of istiod's, told by both.
func (m *mesh) rejects(s *stack.Stack) string {
	m.t.Helper()
	stats, err := s.EnvoyAdmin(m.t.Context(), "/stats?filter=update_rejected")
	if err != nil {
		m.t.Fatal(err)
	}
	metrics, err := m.get("/metrics")
	if err != nil {
		m.t.Fatal(err)
	}
	if !strings.Contains(string(stats), "cluster_manager.cds.update_rejected") || !strings.Contains(metrics, "pilot_xds_pushes") {
		m.t.Fatalf("nobody counts refusals: %s\n%.2000s", stats, metrics)
	}
	found := regexp.MustCompile(`(?m)^.*update_rejected: [1-9].*$`).FindAllString(string(stats), -1)
	found = append(found, regexp.MustCompile(`(?m)^pilot_(total_xds_rejects|xds_[a-z]+_reject)\b.* [1-9].*$`).FindAllString(metrics, -1)...)
	return strings.Join(found, "\n")
}
