//go:build istio && kubernetes

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// warmpathAddress is that of warmpath's pod.
const warmpathAddress = "10.77.2.1:9002"

// istioCollections are where the objects of istio.yaml and its definitions are created.
var istioCollections = map[string]string{
	"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"Service":                  core + "/namespaces/%s/services",
	"Gateway":                  "/apis/networking.istio.io/v1/namespaces/%s/gateways",
	"VirtualService":           "/apis/networking.istio.io/v1/namespaces/%s/virtualservices",
	"DestinationRule":          "/apis/networking.istio.io/v1/namespaces/%s/destinationrules",
	"EnvoyFilter":              "/apis/networking.istio.io/v1alpha3/namespaces/%s/envoyfilters",
}

// createAll creates the objects of a file, and returns the last answer that is no
// success.
func (k *kapi) createAll(data []byte) (refused string) {
	k.t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return refused
		}
		if err != nil {
			k.t.Fatal(err)
		}
		if o == nil {
			continue
		}
		path, known := istioCollections[o["kind"].(string)]
		if !known {
			k.t.Fatalf("where are objects of %v?", o["kind"])
		}
		if namespace, ok := o["metadata"].(object)["namespace"]; ok {
			path = fmt.Sprintf(path, namespace)
		}
		status, text, err := k.send(http.MethodPost, path+"?fieldValidation=Strict", o)
		if err != nil {
			k.t.Fatal(err)
		}
		if status > 299 {
			refused = fmt.Sprintf("%s: %d %s", path, status, text)
		}
	}
}

// kubeconfig writes a file with which istiod is the administrator.
func (k *kapi) kubeconfig() string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), "kubeconfig")
	write(k.t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: kapi, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: kapi, context: {cluster: kapi, user: admin}}]
current-context: kapi
`, k.url(), k.caFile(), adminToken))
	return path
}

// TestIstioWithKubernetes has the real istiod, pilot-discovery, and a real API server,
// which checks istio.yaml by Istio's definitions and makes the EndpointSlices that
// both istiod and warmpath read.
func TestIstioWithKubernetes(t *testing.T) {
	k := startKapi(t)
	k.apply("../../examples/kubernetes/rbac.yaml", "")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, k.token())
	crds, err := os.ReadFile(filepath.Join(os.Getenv("ISTIOD"), "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if refused := k.createAll(crds); refused != "" {
		t.Fatal(refused)
	}
	k.must(http.MethodPost, core+"/namespaces", object{"metadata": object{"name": "istio-system"}})
	m := &mesh{t: t, dir: t.TempDir()}
	configured := prefixAware(0)
	configured.Extra, configured.WithoutXDS, configured.ExtProc = quickHealth, true, warmpathAddress
	var at envoy.Addresses
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 3, ReplicaHost: replicaHost, Config: configured, PoolCluster: models + ";",
		Membership: func(addresses []string) (string, error) {
			for i, a := range addresses {
				k.pods = append(k.pods, pod{address: netip.MustParseAddrPort(a)})
				k.add(i)
			}
			return fmt.Sprintf("kubernetes: {service: llama, namespace: llm, port: http, terminating: gone, apiServer: %q, tokenFile: %q, caFile: %q}", k.url(), token, k.caFile()), nil
		},
		Between: func(a envoy.Addresses) (envoy.Addresses, error) {
			at = a
			return a, m.startPilot(k, a)
		},
		Bootstrap: func([]byte) ([]byte, error) { return m.bootstrap(at), nil },
	})
	m.awaitRoutes(s, at)
	noRejects(t, m, s)
	istioConfigured(t, s)
	istioHomes(t, s)
	istioPods(t, s, k)
	noRejects(t, m, s)
}

// startPilot starts istiod, and gives the API server what is to be applied, warmpath's pod too.
func (m *mesh) startPilot(k *kapi, at envoy.Addresses) error {
	host, err := m.choosePorts(at)
	if err != nil {
		return err
	}
	m.change = testenv.InOrder(
		testenv.Replace(m.t, "port: 8000, targetPort: 8000", fmt.Sprintf("port: 8000, targetPort: %d", k.pods[0].address.Port())),
		testenv.Replace(m.t, "targetPort: ext-proc", "targetPort: 9002"), // the pod below names no port
	)
	text, err := m.objects(host)
	if err != nil {
		return err
	}
	refused := k.createAll(bytes.Replace(text, []byte("    retries:"), []byte("    timeout: 0s\n    retries:"), 1))
	if !strings.Contains(refused, "must be a valid duration greater than 1ms") {
		m.t.Errorf("a timeout of 0s is refused with %q", refused)
	}
	if refused = k.createAll(text); !strings.Contains(refused, "AlreadyExists") { // all but the one that was refused
		m.t.Errorf("the second time: %q", refused)
	}
	k.must(http.MethodPost, inLLM+"/pods", object{
		"metadata": object{"name": "warmpath-0", "labels": object{"app": "warmpath"}},
		"spec":     object{"nodeName": "node-a", "containers": []object{{"name": "warmpath", "image": "warmpath"}}},
	})
	ip := netip.MustParseAddrPort(warmpathAddress).Addr().String()
	k.must(http.MethodPatch, inLLM+"/pods/warmpath-0/status", object{"status": object{
		"phase": "Running", "podIP": ip, "podIPs": []object{{"ip": ip}}, "conditions": []object{{"type": "Ready", "status": "True"}},
	}})
	config := filepath.Join(m.dir, "mesh.yaml")
	write(m.t, config, "enableAutoMtls: false\n")
	port, err := stack.FreePort(host)
	if err != nil {
		return err
	}
	web := fmt.Sprintf("%s:%d", host, port)
	if err := m.run("discovery", "--kubeconfig", k.kubeconfig(), "--meshConfig", config, "--httpsAddr", "", "--secureGRPCAddr", "",
		"--grpcAddr", m.xds, "--httpAddr", web, "--monitoringAddr", m.http, "--ctrlz_port", "0"); err != nil {
		return err
	}
	return m.awaitPods(web, append(k.pods, pod{address: netip.MustParseAddrPort(warmpathAddress)}))
}

// awaitPods waits until istiod, which answers at web, is ready and has read all
// pods. A gateway that asked sooner was once left without endpoints for a minute.
func (m *mesh) awaitPods(web string, pods []pod) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	return m.istiod.Await(ctx, func() error {
		if _, err := get("http://" + web + "/ready"); err != nil {
			return err
		}
		text, err := get("http://" + web + "/debug/endpointShardz")
		if err != nil {
			return err
		}
		for _, p := range pods {
			if ip := p.address.Addr().String(); !strings.Contains(text, strconv.Quote(ip)) {
				return fmt.Errorf("istiod does not know %s", ip)
			}
		}
		return nil
	})
}
