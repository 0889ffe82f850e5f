package main

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

// Replicas of two speeds answer sooner when their weights say so: docs/RATIONALE.md
// has the figures, and those of a trace on which they do not.
func TestSpeedsAreWorthTelling(t *testing.T) {
	for _, tr := range allTraces() {
		if tr.name != "miniswe" && tr.name != "ragpulse" {
			continue
		}
		workloads, err := tr.load("../data")
		if err != nil {
			t.Fatal(err)
		}
		w := workloads[1]
		told, untold := firstTokens(t, w, mixedFleet(w)), firstTokens(t, w, untoldFleet(w))
		t.Logf("%s: %v to the first token in the mean, %v with equal weights", w.Name, told, untold)
		if untold < told*105/100 {
			t.Errorf("%s: weights gain less than 5 %%: why do documents ask for them?", w.Name)
		}
	}
}

// untoldFleet has two speeds, of which the weights say nothing.
func untoldFleet(w *workload) []sim.Replica {
	fleet := mixedFleet(w)
	for i := range fleet {
		fleet[i].Weight = 1
	}
	return fleet
}

// firstTokens is the mean time to the first token with auto, over three seeds.
func firstTokens(t *testing.T, w *workload, fleet []sim.Replica) (mean time.Duration) {
	t.Helper()
	const seeds = 3
	for seed := range uint64(seeds) {
		jobs, err := w.jobs(w.Cache, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		x := w.of(auto, jobs, seed+1)
		x.fleet, x.speed = fleet, w.Speed*3/2
		o, err := x.run()
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for _, d := range o.result.TTFT {
			sum += d
		}
		mean += sum / time.Duration(len(o.result.TTFT)) / seeds
	}
	return mean
}
