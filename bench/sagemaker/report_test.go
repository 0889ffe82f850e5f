package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// flat is a result whose requests all took the same.
func flat(replica string, ttft time.Duration, cached int) *load.Result {
	r := load.NewResult()
	for range 100 {
		r.Add(load.Outcome{Replica: replica, TTFT: ttft, Latency: 2 * ttft, PromptTokens: 100, CachedTokens: cached, OutputTokens: 10})
	}
	r.Elapsed = 10 * time.Second
	return r
}

// Two rounds, one of them twice as slow for all: what is compared within a round
// does not show it. Replicas are five times faster than real.
func TestReport(t *testing.T) {
	const timeScale = 5
	c := full().configurations()[0]
	var rounds []round
	for _, slow := range []time.Duration{1, 2} {
		g := group{ceiling: 0.77, atRandom: 0.25, results: []*load.Result{
			flat("a", slow*50*time.Millisecond, 25), flat("a", slow*50*time.Millisecond, 25), flat("b", slow*10*time.Millisecond, 75),
			flat("b", slow*12*time.Millisecond, 77),
		}}
		rounds = append(rounds, round{groups: []group{g}, alone: flat("a", time.Millisecond, 0)})
	}
	shares := load.Summary{Requests: 10, Errors: map[string]int{"status 503": 1}, Shares: []load.Share{{Fraction: 0.4}, {Fraction: 0.6}}}
	r := newReport(rounds, []configuration{c}, shares, timeScale)
	near := func(got, want float64) bool { return math.Abs(got-want) <= 0.01*math.Abs(want) }

	got := r.Configurations[0].Strategies[2]
	if got.Name != aware || got.Requests != 200 || !near(got.P50.Min, 50) || !near(got.P50.Max, 100) || !near(got.P99, 100) {
		t.Errorf("times %+v", got)
	}
	if !near(got.P50Change.Min, -80) || !near(got.P50Change.Max, -80) || !near(got.HitRate.Median, 0.75) || !near(got.BelowCeiling.Median, 0.02) {
		t.Errorf("changes and hits %+v", got)
	}
	if !near(got.Throughput.Median, 20) || got.ThroughputChange.Median != 0 {
		t.Errorf("throughput %+v", got)
	}
	if !near(r.Alone.P50, 5) || r.Shares.Least != 0.4 || r.Shares.Largest != 0.6 || r.failed() != 1 {
		t.Errorf("alone %+v, shares %+v, %d failed", r.Alone, r.Shares, r.failed())
	}
	text := r.markdown()
	for _, want := range []string{
		"| PREFIX_AWARE | 200 | 0 | 75.0 (75.0..75.0) | 75 (50..100) |", "| -77..-71 % | -37..-33 % |  | |",
		"| failed requests | all | all | 1.0 (≤ 0) | **no** |", "| hit rate below the ceiling | PREFIX_AWARE | " + c.String() + " | 2.0 points (≤ 1) | **no** |",
		"| change of P50 | PREFIX_AWARE | " + c.String() + " | -80.0 % (≤ -71) | yes |",
		"| change of P50 | PREFIX_AWARE, auto | " + c.String() + " | -76.0 % (≤ -77) | **no** |", "Ceiling 77.0 (77.0..77.0) %, expected at random 25.0",
		"| smallest share of a replica | PREFIX_AWARE | different prefixes | 40.0 % (≥ 13.3) | yes |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// What is not streamed has no first token: its whole time is reported.
func TestReportOfWholeAnswers(t *testing.T) {
	c := full().configurations()[4]
	g := group{results: []*load.Result{flat("a", 50*time.Millisecond, 0), flat("a", 50*time.Millisecond, 0), flat("a", 50*time.Millisecond, 0)}}
	r := newConfigurationReport(c, []group{g}, 1)
	if got := r.Strategies[1].P50.Median; c.Stream || math.Abs(got-100) > 1 {
		t.Errorf("P50 %v ms of %v", got, c)
	}
}

// The analysis of random routing and the generators give the announcement's hit
// rates, as far as its questions are in them: 25 → 82 and 30 → 80 %.
func TestExpectationsOfTheWorkloads(t *testing.T) {
	s := full()
	for _, c := range []struct {
		configuration     configuration
		requests          int
		atRandom, ceiling float64
	}{
		{s.configurations()[0], 318, 0.25, 0.77},
		{s.configurations()[2], 600, 0.31, 0.80},
	} {
		requests, err := c.configuration.requests(1)
		if err != nil {
			t.Fatal(err)
		}
		ceiling, err := expectedHitRate(requests, 1, blockTokens)
		if err != nil {
			t.Fatal(err)
		}
		atRandom, err := expectedHitRate(requests, instances, blockTokens)
		if err != nil {
			t.Fatal(err)
		}
		if len(requests) != c.requests || math.Abs(ceiling-c.ceiling) > 0.02 || math.Abs(atRandom-c.atRandom) > 0.02 {
			t.Errorf("%s: %d requests, ceiling %.3f, at random %.3f; want %d, %.2f, %.2f",
				c.configuration.Workload.Name, len(requests), ceiling, atRandom, c.requests, c.ceiling, c.atRandom)
		}
	}
}
