//go:build kubernetes

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/internal/stack"
)

const (
	adminToken = "of-the-administrator"
	namespace  = "llm"
	core       = "/api/v1"
	inLLM      = core + "/namespaces/" + namespace
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices"
)

// kapi is a running API server, a real one.
type kapi struct {
	t       *testing.T
	dir     string
	port    int
	process *stack.Process
	client  *http.Client
	pods    []pod
}

type pod struct {
	address    netip.AddrPort
	generation int // of the pod's name, as a Deployment never uses one twice
}

func (p pod) name(i int) string { return fmt.Sprintf("llama-%d-%d", i, p.generation) }

// startKapi starts the binary that $KAPI names, with an empty cluster.
func startKapi(t *testing.T) *kapi {
	k := &kapi{t: t, dir: t.TempDir()}
	var err error
	if k.port, err = stack.FreePort("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.kill()
		if t.Failed() {
			output := k.process.Output()
			t.Logf("the API server printed:\n%s", output[max(0, len(output)-4000):])
		}
	})
	k.start()
	k.must(http.MethodPost, core+"/namespaces", object{"metadata": object{"name": namespace}})
	for _, zone := range []string{"a", "b"} {
		k.must(http.MethodPost, core+"/nodes", object{"metadata": object{
			"name": "node-" + zone, "labels": object{"topology.kubernetes.io/zone": "eu-1" + zone},
		}})
	}
	return k
}

// start starts the server, again with what it had.
func (k *kapi) start() {
	k.t.Helper()
	program := os.Getenv("KAPI")
	if program == "" {
		k.t.Fatal("KAPI names no API server: run make test-kubernetes")
	}
	var err error
	k.process, err = stack.StartProcess("kapi", nil, program, "-dir", k.dir, "-token", adminToken, "-port", fmt.Sprint(k.port))
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), 2*time.Minute)
	defer cancel()
	if err := k.process.Await(ctx, func() error {
		if err := k.trust(); err != nil {
			return err
		}
		status, body, err := k.send(http.MethodGet, "/readyz", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("not ready: %d %s", status, body)
		}
		return err
	}); err != nil {
		k.t.Fatal(err)
	}
}

// kill ends the server as a crash does.
func (k *kapi) kill() {
	_ = k.process.Signal(syscall.SIGKILL)
	_ = k.process.Stop(time.Minute)
}

func (k *kapi) url() string    { return fmt.Sprintf("https://127.0.0.1:%d", k.port) }
func (k *kapi) caFile() string { return filepath.Join(k.dir, "tls", "apiserver.crt") }

func (k *kapi) trust() error {
	ca, err := os.ReadFile(k.caFile())
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("the certificate is not written yet")
	}
	k.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return nil
}

// send sends a request as the administrator.
func (k *kapi) send(method, path string, body object) (int, []byte, error) {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body)
	}
	request, err := http.NewRequestWithContext(k.t.Context(), method, k.url()+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := k.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// must sends a request that succeeds, and returns the answer.
func (k *kapi) must(method, path string, body object) object {
	k.t.Helper()
	status, text, err := k.send(method, path, body)
	if err != nil || status > 299 {
		k.t.Fatalf("%s %s: %d, %v: %.400s", method, path, status, err, text)
	}
	var answer object
	if err := json.Unmarshal(text, &answer); err != nil {
		k.t.Fatalf("%s %s: %v: %.400s", method, path, err, text)
	}
	return answer
}

// collections are where objects of a kind are created.
var collections = map[string]string{
	"ServiceAccount": inLLM + "/serviceaccounts",
	"Service":        inLLM + "/services",
	"Role":           "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles",
	"RoleBinding":    "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/rolebindings",
	"Deployment":     "/apis/apps/v1/namespaces/" + namespace + "/deployments",
}

// apply creates the objects of a file. The server refuses a field that it does not know.
func (k *kapi) apply(path, query string) {
	k.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		k.t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			k.t.Fatal(err)
		}
		collection, known := collections[o["kind"].(string)]
		if !known {
			k.t.Fatalf("%s: where are objects of %v?", path, o["kind"])
		}
		k.must(http.MethodPost, collection+"?fieldValidation=Strict"+query, o)
	}
}

// token asks for one of warmpath's ServiceAccount.
func (k *kapi) token() string {
	k.t.Helper()
	answer := k.must(http.MethodPost, inLLM+"/serviceaccounts/warmpath/token",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"expirationSeconds": 600}})
	return answer["status"].(map[string]any)["token"].(string)
}

// service makes the Service; without a selector nobody makes its slices.
func (k *kapi) service(port int, selects bool) {
	spec := object{"clusterIP": "None", "ports": []object{{"name": "http", "port": 80, "targetPort": port}}}
	if selects {
		spec["selector"] = object{"app": "llama"}
	}
	k.must(http.MethodPost, inLLM+"/services", object{"metadata": object{"name": "llama"}, "spec": spec})
}

// create makes a pod that is ready, as a kubelet would tell, on a node of a zone.
func (k *kapi) create(name, ip, zone string) {
	k.t.Helper()
	k.must(http.MethodPost, inLLM+"/pods", object{
		"metadata": object{"name": name, "labels": object{"app": "llama"}},
		"spec":     object{"nodeName": "node-" + zone, "containers": []object{{"name": "engine", "image": "engine"}}},
	})
	k.must(http.MethodPatch, inLLM+"/pods/"+name+"/status", object{"status": object{
		"phase": "Running", "podIP": ip, "podIPs": []object{{"ip": ip}}, "conditions": []object{{"type": "Ready", "status": "True"}},
	}})
}

func (k *kapi) delete(name string, grace int) {
	k.t.Helper()
	k.must(http.MethodDelete, fmt.Sprintf("%s/pods/%s?gracePeriodSeconds=%d", inLLM, name, grace), nil)
}

// zoneOf spreads the pods over the zones.
func zoneOf(i int) string { return string("ab"[i%2]) }

// The methods of a cluster.
func (k *kapi) add(i int) {
	k.t.Helper()
	k.pods[i].generation++
	k.create(k.pods[i].name(i), k.pods[i].address.Addr().String(), zoneOf(i))
}

func (k *kapi) ready(i int, ready bool) {
	k.t.Helper()
	status := "False"
	if ready {
		status = "True"
	}
	k.must(http.MethodPatch, inLLM+"/pods/"+k.pods[i].name(i)+"/status",
		object{"status": object{"conditions": []object{{"type": "Ready", "status": status}}}})
}

func (k *kapi) terminate(i int) { k.delete(k.pods[i].name(i), 60) }
func (k *kapi) remove(i int)    { k.delete(k.pods[i].name(i), 0) }

// field is what warmpath.yaml says, with a token in a file.
func (k *kapi) field(token string) string {
	return fmt.Sprintf("kubernetes: {service: llama, namespace: %s, port: http, apiServer: %q, tokenFile: %q, caFile: %q}", namespace, k.url(), token, k.caFile())
}
