package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/sim"
)

// scope is how much is run.
type scope struct {
	traces   []traced
	policies []string // of the table
	rivals   []string // auto's, where much is varied
	rounds   int      // seeds of what is random
	// seeds are for the times, and changedSeeds for changes of the fleet, where few
	// sessions are looked at.
	seeds, changedSeeds int
	variants            []variant
	// outstanding are the loads of a replica, in requests, that are looked for.
	outstanding []float64
	// large is how many requests a trace needs for these loads and for scaling.
	large  int
	events int // times at which the fleet changes
	hot    hotPrefix
	sizes  published
	// longRates and shortRates are tried for SageMaker's workloads, in requests a
	// second.
	longRates, shortRates []float64
	// scaled are conversations at scaledRate while the fleet changes, beside the
	// traces.
	scaled     published
	scaledRate float64
}

// The policies that are compared, and the prefix lengths.
func allPolicies() []string {
	list := []string{"random", "round_robin", "two_choices", "least_outstanding"}
	list = append(list, fixedLengths()...)
	return append(list, "kubeai", "sglang", "sticky", "lmetric", "oracle", "oracle_bounded", "kv_aware", auto)
}

// The policies that criteria name.
const (
	auto   = "auto"
	random = "random"
)

func hashLengths() []string {
	return []string{"hash:256", "hash:1024", "hash:4096", "hash:16384", "hash:65536"}
}

func fixedLengths() []string {
	return append(hashLengths(), "bounded:1024", "bounded:4096", "bounded:16384", "prefix:1024", "prefix:4096", "prefix:16384", "prefix:65536")
}

// rivals are those that may be the best.
func rivals(all []string) (list []string) {
	for _, p := range all {
		if !knowing(p) && p != random && p != "round_robin" && p != "kubeai" {
			list = append(list, p)
		}
	}
	return list
}

func full() scope {
	return scope{
		traces: allTraces(), policies: allPolicies(), rivals: rivals(allPolicies()), rounds: 5, seeds: 60, changedSeeds: 20,
		variants: []variant{
			{name: "seed 2", seed: 1},
			{name: "seed 3", seed: 2},
			{name: "seed 4", seed: 3},
			{name: "seed 5", seed: 4},
			{name: "4 replicas", replicas: 4},
			{name: "32 replicas", replicas: 32},
			{name: "caches ×4", cache: 4},
			{name: "caches ÷4", cache: 0.25},
		},
		outstanding: []float64{2, 8, 30}, large: 3000, events: 5,
		hot: hotPrefix{rate: 40, calm: 120, hot: 180, cooled: 300}, sizes: published{documents: 60, conversations: 60, turns: 10},
		longRates:  []float64{1, 2, 3, 3.5, 4, 5, 6, 8, 10, 12, 14, 17, 20, 24},
		shortRates: []float64{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224},
		scaled:     published{conversations: 600, turns: 10}, scaledRate: 20,
	}
}

// short takes seconds: the small traces, and little varied.
func short() scope {
	s := full()
	s.traces = slices.DeleteFunc(allTraces(), func(t traced) bool {
		return t.name != "miniswe" && t.name != "realhumaneval" && t.name != "copilot"
	})
	s.rounds, s.seeds, s.changedSeeds, s.large, s.events = 2, 2, 2, 1000, 1
	s.policies = []string{random, "least_outstanding", "hash:256", "hash:1024", "hash:16384", "prefix:4096", "sglang", "sticky", "lmetric", "oracle", auto}
	s.rivals = []string{"least_outstanding", "hash:256", "hash:1024", "hash:4096", "hash:16384", "prefix:4096", auto}
	s.variants = []variant{{name: "seed 2", seed: 1}, {name: "caches ×4", cache: 4}}
	s.outstanding = []float64{2}
	s.hot = hotPrefix{rate: 20, calm: 30, hot: 90, cooled: 90}
	s.sizes = published{documents: 30, conversations: 30, turns: 10}
	s.longRates, s.shortRates = []float64{3.5, 14}, []float64{8, 160}
	s.scaled, s.scaledRate = published{conversations: 60, turns: 10}, 6
	return s
}

// limit leaves only the traces and the policies of comma-separated lists; empty ones
// are all. auto stays in any case: everything is compared with it.
func (s *scope) limit(names, policies string) error {
	if names != "" {
		traces := allTraces()
		var chosen []traced
		for _, name := range strings.Split(names, ",") {
			i := slices.IndexFunc(traces, func(t traced) bool { return t.name == name })
			if i < 0 {
				return fmt.Errorf("-traces: there is no trace %q", name)
			}
			chosen = append(chosen, traces[i])
		}
		s.traces = chosen
	}
	if policies == "" {
		return nil
	}
	list := strings.Split(policies, ",")
	for _, p := range list {
		if _, err := sim.Named(p, sim.Options{Engine: engine.Llama70B()}); err != nil {
			return fmt.Errorf("-policies: %w; there are\n%s", err, sim.Names())
		}
	}
	if !slices.Contains(list, auto) {
		list = append(list, auto)
	}
	s.policies, s.rivals = list, rivals(list)
	return nil
}
