package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/kubeapi"
)

// cluster changes the pods behind a Service, one for each replica. All are there
// and ready at first.
type cluster interface {
	// add makes a pod that is ready, again after it was removed.
	add(i int)
	ready(i int, ready bool)
	// terminate lets a pod begin to end; remove takes it away after that.
	terminate(i int)
	remove(i int)
}

// podsComeAndGo plays what pods do while requests run: nothing is lost, nothing
// goes elsewhere than decided, and what ends gets nothing new.
func podsComeAndGo(t *testing.T, s *stack.Stack, c cluster) {
	t.Helper()
	addresses := s.Replicas.Addresses()
	envoyHas(t, s, len(addresses))
	tr := startTraffic(t, s, 4)
	tr.more(t, s, 100)
	idle := func(i int, why string) {
		t.Helper()
		tr.spares(t, s, addresses[i], why)
	}
	c.ready(1, false)
	endpointIs(t, s, addresses[1], "unhealthy")
	idle(1, "is not ready")
	c.ready(1, true)
	endpointIs(t, s, addresses[1], "healthy")
	c.terminate(2)
	endpointIs(t, s, addresses[2], "draining")
	envoyHas(t, s, len(addresses))
	idle(2, "is terminating")
	c.remove(2)
	envoyHas(t, s, len(addresses)-1)
	tr.more(t, s, 100)
	for range 3 { // it flaps
		c.add(2)
		c.terminate(3)
		c.ready(4, false)
		tr.more(t, s, 10)
		c.remove(3)
		c.terminate(2)
		c.ready(4, true)
		c.remove(2)
		c.add(3)
		tr.more(t, s, 10)
	}
	c.add(2)
	envoyHas(t, s, len(addresses))
	for _, a := range addresses {
		endpointIs(t, s, a, "healthy")
	}
	tr.more(t, s, 200)
	tr.end()
	noMisses(t, s)
	atRest(t, s)
}

// podEndsWithStreams holds responses open on a pod that ends and is removed:
// they run to their end, and only then does Envoy forget the endpoint.
func podEndsWithStreams(t *testing.T, s *stack.Stack, c cluster) {
	t.Helper()
	addresses := s.Replicas.Addresses()
	body := chat(strings.Repeat("Stream on a pod that ends. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	open, counts := holdOpen(t, s, body, 2)
	if counts[home] != 2 {
		t.Fatalf("streams at %v, home is %s", counts, home)
	}
	pod := 0
	for i, a := range addresses {
		if a == home {
			pod = i
		}
	}
	c.terminate(pod)
	endpointIs(t, s, home, "draining")
	c.remove(pod)
	if err := s.Await(t.Context(), "the endpoint to leave", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		if len(status.Membership.Leaving) != 1 || status.Outstanding()[home] != 2 {
			return fmt.Errorf("leaving %v, outstanding %v", status.Membership.Leaving, status.Outstanding())
		}
		return s.EnvoyKnows(t.Context(), len(addresses))
	}); err != nil {
		t.Fatal(err)
	}
	s.Replicas.Release()
	for _, r := range open.responses {
		if text := readAll(t, r); !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("a stream was cut: it ends %q", text[max(0, len(text)-60):])
		}
	}
	envoyHas(t, s, len(addresses)-1)
	c.add(pod)
	envoyHas(t, s, len(addresses))
	endpointIs(t, s, home, "healthy")
	atRest(t, s)
}

// standIn is a cluster whose API server is a stand-in: each pod in one of several
// slices, which have 100 endpoints at most, as those of Kubernetes' controller.
type standIn struct {
	*kubeapi.Server
	mu     sync.Mutex
	pods   []kubeapi.Endpoint
	gone   map[int]bool
	slices int
}

func (c *standIn) change(i int, do func(*kubeapi.Endpoint)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(&c.pods[i])
	c.put(i % c.slices)
}

// put writes one of the slices.
func (c *standIn) put(slice int) {
	var endpoints []kubeapi.Endpoint
	for i, e := range c.pods {
		if i%c.slices == slice && !c.gone[i] {
			endpoints = append(endpoints, e)
		}
	}
	c.Put(fmt.Sprintf("llama-%d", slice), endpoints...)
}

func (c *standIn) add(i int) {
	c.change(i, func(e *kubeapi.Endpoint) { *e, c.gone[i] = kubeapi.Endpoint{Address: e.Address}, false })
}

func (c *standIn) ready(i int, ready bool) {
	c.change(i, func(e *kubeapi.Endpoint) { e.NotReady = !ready })
}

func (c *standIn) terminate(i int) {
	c.change(i, func(e *kubeapi.Endpoint) { e.Terminating = true })
}

func (c *standIn) remove(i int) { c.change(i, func(*kubeapi.Endpoint) { c.gone[i] = true }) }

// startInStandIn starts a stack whose membership is that of a stand-in.
func startInStandIn(t *testing.T, replicas int, extra string) (*stack.Stack, *standIn) {
	c := &standIn{Server: kubeapi.Start(t, "a-token"), gone: make(map[int]bool), slices: max(2, replicas/100)}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	configured := prefixAware(0)
	configured.Extra = extra
	return testenv.Start(t, stack.Options{
		Replica: fast, Replicas: replicas, Config: configured,
		Membership: func(addresses []string) (string, error) {
			for _, a := range addresses {
				c.pods = append(c.pods, kubeapi.Endpoint{Address: a})
			}
			for i := range c.slices {
				c.put(i)
			}
			return fmt.Sprintf("kubernetes: {service: %s, namespace: %s, port: http, apiServer: %q, tokenFile: %q, caFile: %q}",
				c.Service, c.Namespace, c.URL, token, c.CAFile), nil
		},
	}), c
}

func TestPodsLoseNothing(t *testing.T) {
	s, c := startInStandIn(t, 6, quickHealth)
	podEndsWithStreams(t, s, c)
	podsComeAndGo(t, s, c)
}

// The API server fails in every way while requests run: the membership stays,
// /status says why, and what happened meanwhile is taken over afterwards.
func TestAPIServerFails(t *testing.T) {
	s, c := startInStandIn(t, 4, quickHealth)
	tr := startTraffic(t, s, 2)
	for i, tc := range []struct {
		name, want  string
		fault, mend func()
	}{
		{"cut", "", func() { c.Cut() }, func() {}},
		{"versions forgotten", "", func() { c.Forget() }, func() {}},
		{"forbidden", "403", func() { c.Refuse(403); c.Cut() }, func() { c.Refuse(0) }},
		{"not found", "404", func() { c.Refuse(404); c.Cut() }, func() { c.Refuse(0) }},
		{"another token", "401", func() { c.SetToken("b-token"); c.Cut() }, func() { c.SetToken("a-token") }},
	} {
		tc.fault()
		if err := s.Await(t.Context(), tc.name+" to be told", func() error {
			status, err := s.Status(t.Context())
			if err == nil && !strings.Contains(status.Membership.Error, tc.want) {
				err = fmt.Errorf("status says %q", status.Membership.Error)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			c.remove(3) // nobody hears of it yet, or at once
		} else {
			c.add(3)
		}
		tr.more(t, s, 50)
		tc.mend()
		envoyHas(t, s, 3+i%2)
		if err := s.Await(t.Context(), "the error to go", func() error {
			status, err := s.Status(t.Context())
			if err == nil && status.Membership.Error != "" {
				err = fmt.Errorf("status still says %q", status.Membership.Error)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	// No endpoint at all is what the API server says, so it is what there is.
	tr.end()
	c.Delete("llama-0")
	c.Delete("llama-1")
	envoyHas(t, s, 0)
	if !strings.Contains(s.Warmpath.Output(), "has no endpoints") {
		t.Error("the log does not warn of a Service without endpoints")
	}
	noMisses(t, s)
	atRest(t, s)
}

func TestKubernetesOptions(t *testing.T) {
	account := t.TempDir()
	in := map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
	getenv := func(name string) string { return in[name] }
	k := config.Kubernetes{Service: "llama", Port: "8000", Terminating: config.Gone}
	if _, err := kubernetesOptions(k, account, getenv); err == nil || !strings.Contains(err.Error(), "no namespace is given") {
		t.Errorf("without a namespace: %v", err)
	}
	if err := os.WriteFile(filepath.Join(account, "namespace"), []byte("llm\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := kubernetesOptions(k, account, getenv)
	if err != nil || o.Server != "https://[fd00::1]:443" || o.Namespace != "llm" || o.TokenFile != filepath.Join(account, "token") ||
		o.CAFile != filepath.Join(account, "ca.crt") || o.Slices.Port.Number != 8000 || !o.Slices.Gone {
		t.Errorf("in a pod: %+v, %v", o, err)
	}
	k = config.Kubernetes{Service: "llama", Namespace: "other", APIServer: "https://example:6443", Terminating: config.Drain}
	if o, err = kubernetesOptions(k, account, getenv); err != nil || o.Server != k.APIServer || o.Namespace != "other" || o.TokenFile != "" || o.CAFile != "" || o.Slices.Gone {
		t.Errorf("with a server: %+v, %v", o, err)
	}
	clear(in)
	if _, err := kubernetesOptions(config.Kubernetes{Service: "llama"}, account, getenv); err == nil || !strings.Contains(err.Error(), "not in a pod?") {
		t.Errorf("outside: %v", err)
	}
}
