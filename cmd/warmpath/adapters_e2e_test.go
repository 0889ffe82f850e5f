package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// adapterStack has replicas that serve the model base, and adapters once they are
// loaded there.
func adapterStack(t *testing.T, replicas int, adapters string) *stack.Stack {
	t.Helper()
	params := fast
	params.Models = []string{"base"}
	return testenv.Start(t, stack.Options{
		Replica: params, Replicas: replicas,
		Config: stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: 1024, Extra: "adapters: " + adapters},
	})
}

func bodyFor(model string, prompt int) []byte {
	return []byte(fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":"prompt %d"}]}`, model, prompt))
}

// 50 adapters that engines load on request, twelve replicas, sets of three: while
// all are within bounds each adapter is asked for at three replicas at most, the
// same ones from beginning to end, and every prompt has one of them.
func TestAdaptersStayOnFewReplicas(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 12,
		Config: stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: 1024, Extra: `adapters: {sticky: 3, models: ["adapter-*"]}`},
	})
	loaded := make(map[string][]string)
	used := make(map[string]bool)
	for round := range 2 {
		for i := range 50 {
			model := fmt.Sprint("adapter-", i)
			for prompt := range 6 {
				host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor(model, prompt))
				if err != nil {
					t.Fatal(err)
				}
				used[host] = true
				if !slices.Contains(loaded[model], host) {
					loaded[model] = append(loaded[model], host)
				}
				again, err := served(t.Context(), s, "/v1/chat/completions", bodyFor(model, prompt))
				if err != nil || again != host {
					t.Fatalf("round %d: prompt %d of %s moved from %s to %s (%v)", round, prompt, model, host, again, err)
				}
			}
		}
	}
	for model, hosts := range loaded {
		if len(hosts) > 3 {
			t.Errorf("%s was loaded by %v", model, hosts)
		}
	}
	if len(used) != 12 {
		t.Errorf("%d replicas have work", len(used))
	}
	base := make(map[string]bool)
	for prompt := range 60 {
		host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor("base", prompt))
		if err != nil {
			t.Fatal(err)
		}
		base[host] = true
	}
	if len(base) < 10 {
		t.Errorf("the base model is served by %d replicas", len(base))
	}
	noMisses(t, s)
	atRest(t, s)
}

// Replicas that have an adapter are found by asking them; who has not loaded it would
// answer 404.
func TestAdaptersAsEnginesTell(t *testing.T) {
	t.Parallel()
	s := adapterStack(t, 4, "{sticky: 2, refresh: 1s}")
	all := s.Replicas.Replicas()
	addresses := s.Replicas.Addresses()
	load := func(have map[int][]string) {
		for i, r := range all {
			r.SetAdapters(have[i]...)
		}
		err := s.Await(t.Context(), "the adapters to be known", func() error {
			status, err := s.Status(t.Context())
			if err != nil {
				return err
			}
			for i, address := range addresses {
				k := slices.IndexFunc(status.Endpoints, func(e stack.EndpointStatus) bool { return e.Address == address })
				if got := status.Endpoints[k].Adapters; !slices.Equal(got, have[i]) {
					return fmt.Errorf("%s: %q, want %q", address, got, have[i])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(model string, among ...int) {
		t.Helper()
		for prompt := range 30 {
			host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor(model, prompt))
			if i := slices.Index(addresses, host); err != nil || !slices.Contains(among, i) {
				t.Fatalf("%s: served by replica %d (%v), want one of %v", model, i, err, among)
			}
		}
	}
	load(map[int][]string{0: {"chat", "sql"}, 2: {"sql"}})
	ask("sql", 0, 2)
	ask("chat", 0)
	ask("base", 0, 1, 2, 3)
	load(map[int][]string{1: {"sql"}, 3: {"chat"}})
	ask("sql", 1)
	ask("chat", 3)
	noMisses(t, s)
	atRest(t, s)
}

// The membership file may say who has an adapter.
func TestAdaptersOfTheMembershipFile(t *testing.T) {
	t.Parallel()
	s := adapterStack(t, 3, "{sticky: 1}")
	addresses := s.Replicas.Addresses()
	s.Replicas.Replica(addresses[1]).SetAdapters("sql")
	endpoints := stack.Endpoints(addresses...)
	endpoints[1].Adapters = fleet.NewNames("sql")
	if err := s.WriteEndpoints(endpoints); err != nil {
		t.Fatal(err)
	}
	err := s.Await(t.Context(), "the file to be read", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		for _, e := range status.Endpoints {
			if len(e.Adapters) > 0 {
				return nil
			}
		}
		return fmt.Errorf("%+v", status.Endpoints)
	})
	if err != nil {
		t.Fatal(err)
	}
	for prompt := range 20 {
		if host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor("sql", prompt)); err != nil || host != addresses[1] {
			t.Fatalf("served by %s (%v), want %s", host, err, addresses[1])
		}
	}
}
