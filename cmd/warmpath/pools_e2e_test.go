package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// pooled is a stack with a default pool of three replicas and two more of two each:
// llama (by model and component) and other (by Envoy's route too).
type pooled struct {
	*stack.Stack
	config              stack.Config
	dir                 string // of the pools' membership files, which have their names
	first, llama, other []string
}

func startPools(t *testing.T) *pooled {
	t.Helper()
	p := &pooled{dir: t.TempDir()}
	for _, name := range []string{"llama", "other"} {
		p.write(t, name, "endpoints: []")
	}
	p.config = stack.Config{
		Strategy: "PREFIX_AWARE",
		Extra: fmt.Sprintf(`pools:
- name: llama
  models: ["llama-*"]
  components: [big]
  routingConfig: {routingStrategy: PREFIX_AWARE, prefixAwareRoutingConfig: {prefixLength: 1024}}
  membership: {file: %q}
- name: other
  models: [other]
  routingConfig: {routingStrategy: RANDOM}
  membership: {file: %q}
`, filepath.Join(p.dir, "llama"), filepath.Join(p.dir, "other")),
	}
	p.Stack = testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 7, Config: p.config,
		Bootstrap: testenv.Replace(t, "              - name: other_pools\n", `              - name: by_path
                match: {prefix: "/other/"}
                request_body_buffer_limit: 4194304
                request_headers_to_remove: [x-gateway-destination-endpoint]
                route: {cluster: warmpath_other, prefix_rewrite: "/", timeout: 0s}
                metadata: {filter_metadata: {warmpath: {pool: other}}}
              - name: other_pools
`),
	})
	all := p.Replicas.Addresses()
	p.first, p.llama, p.other = all[:3], all[3:5], all[5:]
	if err := p.WriteEndpoints(stack.Endpoints(p.first...)); err != nil {
		t.Fatal(err)
	}
	p.write(t, "llama", stack.EndpointsText(stack.Endpoints(p.llama...)))
	p.write(t, "other", stack.EndpointsText(stack.Endpoints(p.other...)))
	p.await(t, "every pool to have its members", func(status stack.Status) bool {
		return healthy(status.Endpoints) == 3 && len(status.Pools) == 2 &&
			healthy(status.Pools[0].Endpoints) == 2 && healthy(status.Pools[1].Endpoints) == 2
	})
	awaitSteering(t, p.Stack)
	return p
}

// healthy counts endpoints, 0 if one of them is not.
func healthy(endpoints []stack.EndpointStatus) int {
	for _, e := range endpoints {
		if e.Health != "healthy" || e.State != "healthy" {
			return 0
		}
	}
	return len(endpoints)
}

// await waits for a state.
func (p *pooled) await(t *testing.T, what string, done func(stack.Status) bool) {
	t.Helper()
	err := p.Await(t.Context(), what, func() error {
		status, err := p.Status(t.Context())
		if err == nil && !done(status) {
			err = fmt.Errorf("status %+v", status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// write replaces a pool's membership file.
func (p *pooled) write(t *testing.T, pool, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, pool), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// One gateway, three models: each request is served by a replica of its pool, the
// one that was decided, and a prefix keeps its home there.
func TestPools(t *testing.T) {
	t.Parallel()
	s := startPools(t)
	first, llama, other := s.first, s.llama, s.other
	prompt := strings.Repeat("The same in every pool. ", 60)
	body := func(model string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"system","content":%q},{"role":"user","content":"q"}]}`, model, prompt)
	}
	for _, tc := range []struct {
		name, path, body string
		header           []string
		pool             []string
		hosts            int // that serve it
	}{
		{name: "default", path: "/v1/chat/completions", body: body("m"), pool: first, hosts: 1},
		{name: "model", path: "/v1/chat/completions", body: body("llama-70b"), pool: llama, hosts: 1},
		{name: "model of a pool that routes at random", path: "/v1/chat/completions", body: body("other"), pool: other, hosts: 2},
		{name: "component", path: "/invocations", body: body("m"), header: []string{"X-Amzn-SageMaker-Inference-Component", "big"}, pool: llama, hosts: 1},
		{name: "component by the pool's name", path: "/v1/chat/completions", body: body("llama-70b"), header: []string{"X-Amzn-SageMaker-Inference-Component", "other"}, pool: other, hosts: 2},
		{name: "route", path: "/other/v1/chat/completions", body: body("llama-70b"), pool: other, hosts: 2},
		{name: "forged", path: "/v1/chat/completions", body: body("m"), header: []string{"x-warmpath-pool", "warmpath_llama"}, pool: first, hosts: 1},
		{name: "forged with a model", path: "/v1/chat/completions", body: body("llama-70b"), header: []string{"x-warmpath-pool", "warmpath_ext_proc"}, pool: llama, hosts: 1},
	} {
		used := make(map[string]int)
		for range 20 {
			host, err := served(t.Context(), s.Stack, tc.path, []byte(tc.body), tc.header...)
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if !slices.Contains(tc.pool, host) {
				t.Errorf("%s: served by %s, want one of %v", tc.name, host, tc.pool)
			}
			used[host]++
		}
		if len(used) != tc.hosts {
			t.Errorf("%s: served by %v, want %d hosts", tc.name, used, tc.hosts)
		}
	}
	noMisses(t, s.Stack)
	truthAgrees(t, s.Stack)
	atRest(t, s.Stack)
}

// A pool whose membership is broken or changes disturbs no other, a reload changes
// each pool's policy, and while warmpath is away the default pool serves.
func TestPoolsLiveApart(t *testing.T) {
	t.Parallel()
	s := startPools(t)
	first, llama, other := s.first, s.llama, s.other
	body := func(model string) []byte {
		return []byte(fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":%q}]}`, model, strings.Repeat("The same. ", 200)))
	}
	ask := func(model string, pool []string) (host string) {
		t.Helper()
		host, err := served(t.Context(), s.Stack, "/v1/chat/completions", body(model))
		if err != nil || !slices.Contains(pool, host) {
			t.Fatalf("%s: %s, %v; want one of %v", model, host, err, pool)
		}
		return host
	}
	home := ask("llama-70b", llama)

	// The home leaves; the others' homes stay where they are.
	defaultHome := ask("m", first)
	left := slices.DeleteFunc(slices.Clone(llama), func(a string) bool { return a == home })
	s.write(t, "llama", stack.EndpointsText(stack.Endpoints(left...)))
	s.write(t, "other", "endpoints: [nonsense")
	s.await(t, "one change to be taken and one refused", func(status stack.Status) bool {
		return len(status.Pools[0].Endpoints) == 1 && status.Pools[1].Membership.Error != ""
	})
	for range 10 {
		ask("llama-70b", left)
		ask("other", other)
		if host := ask("m", first); host != defaultHome {
			t.Errorf("the default pool's home is %s, was %s", host, defaultHome)
		}
	}
	if n := metric(t, s.Stack, "warmpath_membership_errors_total", `pool="other"`); n != 1 {
		t.Errorf("%v errors of the pool, want 1", n)
	}

	s.Warmpath.Kill()
	for range 10 {
		ask("llama-70b", first)
		ask("other", first)
	}
}

// A pool's policy is live.
func TestPolicyOfAPoolIsLive(t *testing.T) {
	t.Parallel()
	s := startPools(t)
	used := func() map[string]int {
		hosts := make(map[string]int)
		for range 20 {
			host, err := served(t.Context(), s.Stack, "/v1/chat/completions", []byte(`{"model":"other","max_tokens":1,"messages":[{"role":"user","content":"the same"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			hosts[host]++
		}
		return hosts
	}
	if hosts := used(); len(hosts) != len(s.other) {
		t.Errorf("RANDOM uses %v", hosts)
	}
	c := s.config
	c.Extra = strings.Replace(c.Extra, "routingStrategy: RANDOM", "routingStrategy: PREFIX_AWARE, prefixAwareRoutingConfig: {prefixLength: 1024}", 1)
	if err := s.SetConfig(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if hosts := used(); len(hosts) != 1 {
		t.Errorf("PREFIX_AWARE uses %v", hosts)
	}
}

// So is which models and components belong to it, while requests run.
func TestModelsOfAPoolAreLive(t *testing.T) {
	t.Parallel()
	s := startPools(t)
	tr := startTraffic(t, s.Stack, 2)
	for _, tc := range []struct {
		models string // of other
		pool   []string
	}{{"[other, embedder]", s.other}, {"[other]", s.first}} {
		c := s.config
		c.Extra = strings.Replace(c.Extra, "models: [other]", "models: "+tc.models, 1)
		if err := s.SetConfig(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			host, err := served(t.Context(), s.Stack, "/v1/chat/completions", bodyFor("embedder", i))
			if err != nil || !slices.Contains(tc.pool, host) {
				t.Errorf("models %s: served by %s (%v), want one of %v", tc.models, host, err, tc.pool)
			}
		}
	}
	tr.more(t, s.Stack, 20)
	tr.end()
	noMisses(t, s.Stack)
}
