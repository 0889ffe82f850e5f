package main

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// served is an answer of a replica whose engine had so many of 1,010 tokens.
func served(replica string, prefix, cached int, ttft time.Duration) load.Outcome {
	return load.Outcome{Replica: replica, Prefix: prefix, TTFT: ttft, PromptTokens: 1010, CachedTokens: cached, OutputTokens: 8}
}

// half is an arm of ten requests of two prefixes of 1,000 tokens, so many of them warm.
func half(warmOnes int) outcomes {
	o := outcomes{elapsed: 3 * time.Second}
	for i := range 10 {
		cached, ttft := 12, time.Second
		if i < warmOnes {
			cached, ttft = 1005, 100*time.Millisecond
		}
		o.all = append(o.all, served([]string{"a:1", "b:1"}[i%2], i%2, cached, ttft))
	}
	return o
}

func measured() *measurement {
	return &measurement{
		workload: workload{
			scale: scale{prefixes: 2, uses: 5, shortest: 1000, longest: 1000, leastGain: 3}, lengths: []int{1000, 1000},
			bursts: []burst{{threshold: 0}, {threshold: 1000}},
		},
		roundRobin: half(2), warmpath: half(8), bursts: []outcomes{half(10), half(9)}, told: told{80, 100, 70, 100},
	}
}

func TestReport(t *testing.T) {
	m := measured()
	r := newReport(m)
	if r.Ceiling != 0.8 || r.Warmpath.WarmRequests != 0.8 || r.RoundRobin.WarmRequests != 0.2 {
		t.Errorf("ceiling %v, warm %v and %v", r.Ceiling, r.Warmpath.WarmRequests, r.RoundRobin.WarmRequests)
	}
	if want := (times{Mean: 280, P50: 100, P90: 1000}); r.Warmpath.TTFT != want {
		t.Errorf("times %+v, want %+v", r.Warmpath.TTFT, want)
	}
	if want := float64(8*1005+2*12) / 10100; r.Warmpath.CachedTokens != want {
		t.Errorf("cached %v, want %v", r.Warmpath.CachedTokens, want)
	}
	if got := r.Warmpath.spread(); got != "5 (1), 5 (1)" {
		t.Errorf("replicas %s", got)
	}
	if r.Bursts[0].Threshold != "auto" || r.Bursts[1].Threshold != "1000" || r.Bursts[1].WarmRequests != 0.9 {
		t.Errorf("bursts %+v", r.Bursts)
	}
	text := r.markdown()
	for _, want := range []string{
		"Of 10 requests 80.0 % can find", "| Envoy's round robin | 20.0 % | 20.9 % | 820 | 1000 | 1000 | 0 | 3 s |", "| warmpath, PREFIX_AWARE, auto | 80.0 % |",
		"80.0 % read of the answers, 70.0 % of the engines' metrics", "| auto | 5, 5 | 100.0 % |", "| mean TTFT of round robin over that of warmpath: 2.9 times (≥ 3) | **no** |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

// A percentile is a time that was measured, the smallest that so many do not exceed.
func TestTimes(t *testing.T) {
	ms := func(list ...int) (all []time.Duration) {
		for _, n := range list {
			all = append(all, time.Duration(n)*time.Millisecond)
		}
		return all
	}
	for _, tc := range []struct {
		all  []time.Duration
		want times
	}{
		{nil, times{}},
		{ms(4), times{4, 4, 4}},
		{ms(9, 1, 2), times{4, 2, 9}},
		{ms(8, 2, 4, 6), times{5, 4, 8}},
		{ms(11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), times{6, 6, 10}},
	} {
		if got := timesOf(tc.all); got != tc.want {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}

// Each bound is found broken alone.
func TestCriteria(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*measurement)
		want   string
	}{
		{"all kept", func(*measurement) {}, ""},
		{"a request of round robin fails", func(m *measurement) { m.roundRobin.all[9] = load.Outcome{Err: "status 503"} }, "failed requests: 1.0 (≤ 0)"},
		{"one of a burst fails", func(m *measurement) { m.bursts[1].all[0].Err = "status 503" }, "failed requests: 1.0 (≤ 0)"},
		{"less warm than can be", func(m *measurement) { m.warmpath.all[0].CachedTokens = 807 }, "warm requests below the ceiling: 10.0 points (≤ 3)"},
		{"as slow", func(m *measurement) {
			for i := range m.warmpath.all {
				m.warmpath.all[i].TTFT = time.Second
			}
		}, "mean TTFT of round robin over that of warmpath: 0.8 times (≥ 2.5)"},
	} {
		m := measured()
		m.workload.leastGain = 2.5
		tc.change(m)
		r := newReport(m)
		err := r.verdict()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != "not kept: "+tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// An arm in which all failed has no times, and does not pass for a fast one.
func TestAllFailed(t *testing.T) {
	m := measured()
	for i := range m.warmpath.all {
		m.warmpath.all[i] = load.Outcome{Err: "status 503"}
	}
	r := newReport(m)
	for _, c := range r.Criteria {
		if c.Kept {
			t.Errorf("kept: %s", c.What)
		}
	}
	if !strings.Contains(r.markdown(), "10, 10 × status 503") {
		t.Error(r.markdown())
	}
}
