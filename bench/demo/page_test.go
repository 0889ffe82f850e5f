package main

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"testing"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// The hit rates on the live page are within two points of what the replicas' caches
// really had, of the fleet and of each replica.
func TestLivePageTellsTheTruth(t *testing.T) {
	o := small(t)
	o.rate = 150
	s, err := stack.Start(t.Context(), stack.Options{
		Warmpath: []string{o.warmpath}, Envoy: o.envoy, Dir: t.TempDir(), Replicas: 3,
		Replica: replica.Params{TimeScale: timeScale}, Inspect: 1, Config: stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength},
		// On a busy machine Envoy would give up on some streams, which then go uninspected.
		Bootstrap: testenv.Replace(t, "message_timeout: 0.25s", "message_timeout: 5s"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	d := &demonstration{ctx: t.Context(), options: o, stack: s, out: io.Discard}
	o.workload.Uses = 12 // enough of each replica for its last minute to count alone
	prompts, err := o.workload.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	requests, err := load.Kind{API: load.Chat, Model: "llama-70b", Stream: true, OutputTokens: o.outputTokens}.Requests(prompts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.measure("auto", requests); err != nil {
		t.Fatal(err)
	}
	pool := livePool(t, s.AdminURL())
	var prompt, cached int64
	shown := make(map[string]*float64)
	for _, m := range pool.Members {
		shown[m.Address] = m.Actual
	}
	for i, stats := range s.Replicas.Stats() {
		prompt, cached = prompt+stats.PromptTokens, cached+stats.CachedTokens
		within(t, stats.Replica, shown[s.Replicas.Addresses()[i]], stats.HitRate)
	}
	within(t, "the fleet", pool.Actual, float64(cached)/float64(prompt))
	if rate := float64(cached) / float64(prompt); rate < 0.5 || rate > 0.95 {
		t.Errorf("the replicas hit %.3f: too little to compare", rate)
	}
}

// livePool is the default pool as the page is told of it.
func livePool(t *testing.T, admin string) view.Pool {
	t.Helper()
	response, err := http.Get(admin + "/api/live")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var state view.Snapshot
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil || len(state.Pools) != 1 {
		t.Fatalf("%d pools: %v", len(state.Pools), err)
	}
	return state.Pools[0]
}

func within(t *testing.T, what string, shown *float64, truth float64) {
	t.Helper()
	if shown == nil {
		t.Errorf("%s: no hit rate, the replica's is %.4f", what, truth)
		return
	}
	t.Logf("%s: %.4f on the page, %.4f at the replica", what, *shown, truth)
	if math.Abs(*shown-truth) > 0.02 {
		t.Errorf("%s: a hit rate of %.4f on the page, %.4f at the replica", what, *shown, truth)
	}
}
