package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// flat is a sample whose requests all took the same, and whose processor time and
// throughput are given.
func flat(latency time.Duration, perSecond int, envoy, router time.Duration) sample {
	s := sample{alone: load.NewResult(), busy: load.NewResult(), spent: spent{envoy: envoy, router: router}}
	for range 100 {
		s.alone.Add(load.Outcome{Latency: latency})
	}
	for range perSecond {
		s.busy.Add(load.Outcome{Latency: latency})
	}
	s.busy.Elapsed = time.Second
	return s
}

func testArms(t *testing.T, names string) []arm {
	t.Helper()
	chosen, err := chosenArms(names)
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

// Three rounds, one of them twice as slow for all: what is compared within a
// round does not show it.
func TestReport(t *testing.T) {
	arms := testArms(t, "noop,"+aware)
	cases := []testCase{{Bytes: 4096}, {Bytes: 1 << 20}}
	var all rounds
	for _, slow := range []time.Duration{1, 2, 1} {
		round := func(extra time.Duration) []sample {
			return []sample{
				flat(slow*time.Millisecond, 1000, 100*time.Millisecond, 0),
				flat(slow*2*time.Millisecond, 500, 200*time.Millisecond, 50*time.Millisecond),
				flat(slow*(2100*time.Microsecond+extra), 400, 200*time.Millisecond, 50*time.Millisecond),
			}
		}
		all = append(all, [][]sample{round(0), round(900 * time.Microsecond)})
	}
	r := newReport(all, cases, arms)
	near := func(got, want float64) bool { return math.Abs(got-want) <= 0.01*math.Abs(want) }

	own := r.Cases[0].Arms[2]
	if own.Name != aware || !near(own.P50.Median, 2100) || !near(own.P50.Max, 4200) || !near(own.AddedP50.Median, 1100) || !near(own.AddedP99.Max, 2200) {
		t.Errorf("latencies %+v", own)
	}
	if !near(own.Envoy.Median, 500) || !near(own.Router.Median, 125) || !near(own.Throughput.Median, 400) || own.Sent != 3*500 {
		t.Errorf("costs %+v", own)
	}
	for _, c := range []struct {
		bytes int
		what  string
		value float64
		kept  bool
	}{
		{4096, "added P50", 1.1, true},
		{4096, "added P99", 1.1, true},
		{4096, "CPU of Envoy and router", 1.25, false},
		{4096, "CPU of router", 1.25, false},
		{4096, "throughput", 0.8, false},
		{1 << 20, "added P50", 2, false},
		{1 << 20, "growth of the difference", 900, false},
	} {
		found := false
		for _, k := range r.Criteria {
			if k.What == c.what && k.Case == (testCase{Bytes: c.bytes}).String() {
				found = true
				// The histogram's rounding may put a value that is just the bound beyond it.
				if !near(k.Value, c.value) || k.Kept != c.kept && !near(k.Value, k.Bound) {
					t.Errorf("%+v, want %+v", k, c)
				}
			}
		}
		if !found {
			t.Errorf("no criterion %q for %d bytes in %+v", c.what, c.bytes, r.Criteria)
		}
	}
	markdown := r.markdown()
	for _, want := range []string{
		"## 4 KiB, model before messages", "| " + aware + " | 2", "**0.80× (≥ 0.95)**", "| growth of the difference |  | **899 µs (≤ 696)** |", "3 rounds",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("it does not say %q:\n%s", want, markdown)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// What telling costs is compared with the arm that tells nothing.
func TestTelling(t *testing.T) {
	arms := testArms(t, "warmpath-auto,warmpath-auto-silent")
	for _, tc := range []struct {
		router time.Duration
		kept   bool
	}{{50 * time.Millisecond, true}, {61 * time.Millisecond, true}, {64 * time.Millisecond, false}} {
		all := rounds{{{
			flat(time.Millisecond, 1000, 100*time.Millisecond, 0),
			flat(2*time.Millisecond, 500, 200*time.Millisecond, tc.router),
			flat(2*time.Millisecond, 500, 200*time.Millisecond, 50*time.Millisecond),
		}}}
		found := criteria(all, []testCase{{Bytes: 4096}}, arms)
		if len(found) != 1 || found[0].Arm != "warmpath-auto" || found[0].Kept != tc.kept {
			t.Errorf("%v of 50 ms: %+v", tc.router, found)
		}
	}
}
