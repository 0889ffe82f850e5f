package extproc

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// saying is what Envoy's configuration says of every request.
type saying struct{ said ChosenPolicy }

func (s saying) Policy(context.Context, *extprocv3.ProcessingRequest) ChosenPolicy { return s.said }

// poolOf returns a pool with two endpoints 10.0.NET.1:80 and 10.0.NET.2:80 that
// counts with others.
func poolOf(t testing.TB, counting *route.Router, name string, net int, policy route.Policy, models ...string) *Pool {
	t.Helper()
	p := &Pool{Name: name, Cluster: name + "_cluster", Models: models, Router: route.NewRouterCounting(policy, counting.Loads())}
	var endpoints []fleet.Endpoint
	for i := range 2 {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:80", net, i+1), Weight: 1})
	}
	set, _ := fleet.NewSet(endpoints)
	p.Router.SetMembership(set)
	return p
}

// somePools are the default pool and three others: llama (all models that begin
// with llama-, and component big), tiny (llama-tiny) and random, which does not
// look at prompts (embedder).
func somePools(t testing.TB, fallback *route.Router) *Pools {
	t.Helper()
	long := route.Policy{Strategy: route.PrefixAware, PrefixLength: 2048, ConcurrencyThreshold: 2}
	llama := poolOf(t, fallback, "llama", 1, long, "llama-*")
	llama.Components = []string{"big"}
	pools, err := NewPools(
		&Pool{Cluster: "warmpath_pool", Router: fallback}, llama,
		poolOf(t, fallback, "tiny", 2, prefixAware(), "llama-tiny", "llama-tiny-*"),
		poolOf(t, fallback, "random", 3, route.Policy{Strategy: route.Random}, "embedder"),
	)
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

func TestPoolByModel(t *testing.T) {
	pools := somePools(t, newRouter(t, prefixAware(), 2))
	for model, want := range map[string]string{
		"llama-70b": "llama", "llama-": "llama", "llama": "", "Llama-70b": "", "": "",
		"llama-tiny": "tiny", "llama-tiny-q4": "tiny", "llama-tin": "llama", "embedder": "random", "embedder-2": "",
	} {
		got := ""
		if pool := pools.byModel(model); pool != nil {
			got = pool.Name
		}
		if got != want {
			t.Errorf("model %q: pool %q, want %q", model, got, want)
		}
	}
}

func TestPoolsThatClaimTheSame(t *testing.T) {
	router := newRouter(t, prefixAware(), 1)
	for _, tc := range []struct {
		a, b Pool
		want string
	}{
		{Pool{Name: "a"}, Pool{Name: "a", Cluster: "y"}, `pool "a": want a name of its own`},
		{Pool{Name: "a"}, Pool{Cluster: "y"}, `pool "": want a name of its own`},
		{Pool{Name: "a"}, Pool{Name: "b"}, `both are cluster "x"`},
		{Pool{Name: "a"}, Pool{Name: "b", Cluster: "d"}, `both are cluster "d"`},
		{Pool{Name: "a", Models: []string{"m"}}, Pool{Name: "b", Cluster: "y", Models: []string{"m"}}, `both have model "m"`},
		{Pool{Name: "a", Models: []string{"m*"}}, Pool{Name: "b", Cluster: "y", Models: []string{"m*"}}, `both have model "m*"`},
		{Pool{Name: "a", Components: []string{"c"}}, Pool{Name: "b", Cluster: "y", Components: []string{"c"}}, `both have component "c"`},
		{Pool{Name: "a"}, Pool{Name: "b", Cluster: "y", Components: []string{"a"}}, `both have component "a"`},
	} {
		tc.a.Cluster = "x"
		if tc.b.Cluster == "" {
			tc.b.Cluster = "x"
		}
		_, err := NewPools(&Pool{Cluster: "d", Router: router}, &tc.a, &tc.b)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v and %+v: %v, want %s", tc.a, tc.b, err, tc.want)
		}
	}
}

// What names a pool that there is not is told, each as what it is, and what comes after
// a word that counts is not.
func TestUnknownNames(t *testing.T) {
	for name, tc := range map[string]struct {
		said, component, path, model string
		want                         Unknown
		pool                         string
	}{
		"nothing":                       {},
		"a model of a pool":             {model: "llama-70b", pool: "llama"},
		"a model of none":               {model: "gpt", want: Unknown{Model: true}},
		"a component":                   {component: "big", model: "gpt", pool: "llama"},
		"a component of none":           {component: "small", want: Unknown{Component: true}},
		"both of none":                  {component: "small", model: "gpt", want: Unknown{Component: true, Model: true}},
		"a component of none, a model":  {component: "small", model: "embedder", want: Unknown{Component: true}, pool: "random"},
		"a pool that Envoy names":       {said: "tiny", component: "small", model: "gpt", pool: "tiny"},
		"none that Envoy names":         {said: "huge", model: "llama-70b", want: Unknown{Pool: true}, pool: "llama"},
		"a model in the path":           {path: "/model/llama-70b/invoke", pool: "llama"},
		"a model of none in the path":   {path: "/model/gpt/invoke", want: Unknown{Model: true}},
		"a component before the path's": {component: "big", path: "/model/gpt/invoke", pool: "llama"},
	} {
		observer := new(recorder)
		settings := testSettings
		if tc.said != "" {
			settings.Policies = saying{ChosenPolicy{Pool: tc.said}}
		}
		server := NewForPools(somePools(t, newRouter(t, prefixAware(), 2)), settings, observer, func() uint64 { return 1 })
		body := fmt.Sprintf(`{"model":%q,"prompt":"x"}`, tc.model)
		at := tc.path
		if at == "" {
			at = "/v1/completions"
		}
		headers := fmt.Sprintf("headers :method=POST :path=%s content-type=application/json content-length=%d", at, len(body))
		if tc.component != "" {
			headers += " x-component=" + tc.component
		}
		play(t, server, message(t, headers), message(t, "body eos "+body))
		if r := observer.records[0]; r.Unknown != tc.want || r.Pool != tc.pool {
			t.Errorf("%s: pool %q, unknown %+v, want %q and %+v", name, r.Pool, r.Unknown, tc.pool, tc.want)
		}
	}
}

// Other pools are for requests that begin after the change; one that has begun keeps
// those it began with.
func TestSetPools(t *testing.T) {
	router := newRouter(t, prefixAware(), 2)
	before := somePools(t, router)
	observer := new(recorder)
	server := NewForPools(before, testSettings, observer, func() uint64 { return 1 })
	moved, err := NewPools(&Pool{Cluster: "warmpath_pool", Router: router}, poolOf(t, router, "other", 4, prefixAware(), "llama-*"))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"model":"llama-70b","prompt":"x"}`
	head := message(t, fmt.Sprintf("headers :method=POST :path=/v1/completions content-type=application/json content-length=%d", len(body)))
	f := &fakeStream{
		ctx: t.Context(), messages: []*extprocv3.ProcessingRequest{head, message(t, "body eos "+body)}, end: io.EOF,
		answered: func(i int, _ []*extprocv3.ProcessingResponse) {
			if i == 0 { // its body is still to come
				server.SetPools(moved)
			}
		},
	}
	if err := server.Process(f); err != nil {
		t.Fatal(err)
	}
	play(t, server, head, message(t, "body eos "+body))
	if first, second := observer.records[0].Pool, observer.records[len(observer.records)-1].Pool; first != "llama" || second != "other" {
		t.Errorf("pools %q and then %q, want llama and other", first, second)
	}
}

// manyModels are 100,000 rules in 100 pools, every one of them for all models that
// begin alike.
func manyModels(t testing.TB) *Pools {
	t.Helper()
	var others []*Pool
	for i := range 100 {
		p := &Pool{Name: fmt.Sprint("p", i), Cluster: fmt.Sprint("c", i)}
		for k := range 1000 {
			p.Models = append(p.Models, fmt.Sprintf("vendor-%d/model-%d-*", i, k))
		}
		others = append(others, p)
	}
	pools, err := NewPools(&Pool{Cluster: "d"}, others...)
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

// A request whose model is none of many costs no more than a moment. It took 0.7 ms
// when each rule was looked at.
func TestManyModelsCostLittle(t *testing.T) {
	pools := manyModels(t)
	least := time.Hour
	for range 100 {
		begin := time.Now()
		if pool := pools.byModel("vendor-99/model-none"); pool != nil {
			t.Fatalf("pool %q", pool.Name)
		}
		least = min(least, time.Since(begin))
	}
	if least > 100*time.Microsecond {
		t.Errorf("%s to find no rule", least)
	}
	if pool := pools.byModel("vendor-99/model-999-awq"); pool == nil || pool.Name != "p99" {
		t.Errorf("pool %v", pool)
	}
}

func TestModelsAreBounded(t *testing.T) {
	many := &Pool{Name: "a", Cluster: "x"}
	for i := range MaxModels + 1 {
		many.Models = append(many.Models, fmt.Sprint("m", i))
	}
	long := &Pool{Name: "a", Cluster: "x", Models: []string{strings.Repeat("m", MaxModelBytes+1)}}
	for want, pool := range map[string]*Pool{
		`pool "a": model "m100000" is one too many, want at most 100000 in all pools`: many,
		`has 257 bytes, want at most 256`:                                             long,
	} {
		if _, err := NewPools(&Pool{Cluster: "d"}, pool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func BenchmarkPoolByModel(b *testing.B) {
	pools := manyModels(b)
	for _, model := range []string{"vendor-99/model-none", "vendor-99/model-999-awq"} {
		b.Run(model, func(b *testing.B) {
			for b.Loop() {
				pools.byModel(model)
			}
		})
	}
}
