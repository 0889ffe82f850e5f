package main

import (
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func rowWith(policy string, hits, busiest, p90 float64) row {
	return row{Policy: policy, HitRate: hits, BusiestRequests: busiest, P50: p90 / 2, P90: p90, Throughput: 100}
}

func TestBest(t *testing.T) {
	rows := []row{rowWith("random", .1, 1, 9), rowWith("hash:256", .9, 1.7, 2), rowWith("hash:1024", .8, 1.6, 3), rowWith("prefix:4096", .7, 1.1, 4), rowWith("oracle", .95, 1, 1), rowWith("auto", .9, 1.2, 2.5)}
	if best, ok := bestFixed(rows); !ok || best.Policy != "hash:1024" {
		t.Errorf("best fixed length %q, want hash:1024: the first is out of balance", best.Policy)
	}
	if best, ok := fastest(rows); !ok || best.Policy != "hash:256" {
		t.Errorf("fastest %q, want hash:256: the oracle does not count", best.Policy)
	}
	if _, ok := bestFixed(rows[:2]); ok {
		t.Error("none is in balance")
	}
	list := ratios([]compared{{Rows: rows, workload: workload{Name: "a"}}, {Rows: []row{rowWith("random", 0, 0, 2), rowWith("auto", 0, 0, 1)}, workload: workload{Name: "b"}}})
	if list[0].Policy != "oracle" || list[1].Policy != "hash:256" || list[2].Policy != "auto" || list[2].Largest != 1.25 || list[2].Workload != "a" || len(list[2].ByWorkload) != 2 {
		t.Errorf("%+v", list)
	}
}

func TestFrontierCriteria(t *testing.T) {
	a := rowWith("auto", .9, 1.5, 1)
	for _, c := range []struct {
		fixed       row
		better, not float64
	}{
		{rowWith("hash:1", .9, 2, 1), 0, 0},        // worse in balance
		{rowWith("hash:1", .8, 1.5, 1), 0, 0},      // worse in hits
		{rowWith("hash:1", .8, 1.2, 1), 0, 1},      // better in balance, worse in hits
		{rowWith("hash:1", .95, 1.5, 1), 1, 1},     // better in hits
		{rowWith("hash:1", .9, 1.2, 1), 1, 1},      // better in balance
		{rowWith("hash:1", .9001, 1.505, 1), 0, 0}, // the same
		{rowWith("oracle", .99, 1, 1), 0, 0},       // not a length
	} {
		got := frontierCriteria(compared{Rows: []row{c.fixed, a}}, a)
		if got[0].Value != c.better || got[1].Value != c.not || got[1].Kept != (c.not == 0) {
			t.Errorf("%+v: better %v, not beaten %v, want %v and %v", c.fixed, got[0].Value, got[1].Value, c.better, c.not)
		}
	}
}

// A length that auto does not beat as it is can be beaten with a threshold.
func TestCurveCriteria(t *testing.T) {
	a := rowWith(auto, .9, 1.5, 1)
	r := &report{Frontiers: []frontier{{"x", []int{1, 2}, []row{rowWith(auto, .8, 1.2, 1), rowWith(auto, .6, 1.1, 1)}}}}
	for _, c := range []struct {
		fixed row
		not   float64
	}{
		{rowWith("hash:1", .89, 1.5, 1), 0},  // as it is
		{rowWith("hash:1", .79, 1.25, 1), 0}, // with 1
		{rowWith("hash:1", .5, 1.1, 1), 0},   // with 2
		{rowWith("hash:1", .85, 1.3, 1), 1},  // between them
		{rowWith("hash:1", .95, 1.6, 1), 1},
		{rowWith("oracle", .99, 1, 1), 0}, // not a length
	} {
		got := r.curveCriteria(compared{workload: workload{Name: "x"}, Rows: []row{c.fixed, a}}, a)
		if len(got) != 1 || got[0].Value != c.not {
			t.Errorf("%+v: %+v, want %v", c.fixed, got, c.not)
		}
	}
	if got := r.curveCriteria(compared{workload: workload{Name: "y"}, Rows: []row{a}}, a); got != nil {
		t.Errorf("without a curve: %+v", got)
	}
}

// small is a report with every part, and one bound of each kind missed.
func small() *report {
	w := workload{Name: "talk ×4", Requests: 100, Replicas: 8, Model: "llama-70b", Cache: 1000, Speed: 4, Prefixes: true, Loaded: true, FewSessions: true}
	rows := []row{rowWith("random", .1, 1, 9), rowWith("hash:1024", .8, 1.5, 3), rowWith("sticky", .7, 1.3, 2), rowWith("auto", .78, 1.6, 2.5)}
	long := w
	long.Name, long.Speed = "SageMaker long", 12
	r := &report{
		Seed: 1, Minutes: 2, Traces: []compared{{w, 1, rows}}, Frontiers: []frontier{{w.Name, []int{1}, rows[3:]}},
		SageMaker: []sagemakerReport{{compared{long, 2, rows}, .8, []rateReport{{1, rows[0], rows[3]}}, 24, rows}},
		Hot:       []hotReport{{"auto", false, 1.2, 5, 6, 2, 3, rows[3]}, {"sticky", true, 2, 0, 2, 0, 2, rows[2]}},
		Routers:   []routersReport{{w.Name, "auto", rows[3], rows[2]}},
		Scaling:   []scalingReport{{w.Name, 8, "auto", 5, 20, .7, .8, rows[3], 1}, {w.Name, 8, "hash:1024", 5, 20, .75, .8, rows[1], 0}},
		Robust:    []comparison{{"seed 2", w.Name, 4, rows[3], &rows[1], true, 60, rows[3], rows[2]}, {"seed 2", "lengths", 4, rows[3], nil, false, 1, rows[3], rows[3]}},
		Mixed:     []mixedReport{{w.Name, rows}},
	}
	r.HotTable = &compared{w, 1, rows}
	r.Machine.Date, r.Machine.Command, r.Machine.Go, r.Machine.Commit = "2026-01-01 00:00:00 UTC", "policies", "go", "v1"
	r.Ratios = ratios(r.workloads())
	r.Criteria = r.criteria()
	return r
}

func TestMarkdown(t *testing.T) {
	got := small().markdown()
	const golden = "testdata/report.md"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant %s; -rewrite accepts it", got, golden)
	}
	for _, line := range strings.Split(got, "\n") {
		if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
			t.Errorf("%s", line)
		}
	}
}

func TestRowOf(t *testing.T) {
	a := outcome{result: sim.Result{Requests: 2, PromptTokens: 100, HitTokens: 50, TTFT: ttft(1, 3), Keyed: 2, Moved: 1, Elapsed: second, OutputTokens: 10, Shares: []sim.Share{{Requests: 2}, {}}}, outstanding: 1}
	b := outcome{result: sim.Result{Requests: 2, PromptTokens: 100, TTFT: ttft(2, 4), Keyed: 2, Overflowed: 1, Elapsed: second, OutputTokens: 30, Shares: []sim.Share{{Requests: 1}, {Requests: 1}}}, outstanding: 3}
	got := rowOf("x", a, b)
	if got.Requests != 4 || got.HitRate != .25 || got.P50 != 3000 || got.P99 != 4000 || got.Mean != 2500 || got.BusiestRequests != 1.5 ||
		got.MovedShare != .25 || got.OverflowShare != .25 || got.Outstanding != 2 || got.Throughput != 20 || len(got.percentiles) != 99 {
		t.Errorf("%+v", got)
	}
}

func TestSpeedFor(t *testing.T) {
	jobs, _ := hotPrefix{rate: 10, calm: 20, hot: 20, cooled: 20}.jobs(1, false)
	w := &workload{Name: "x", Replicas: 4, Speed: 1, params: modelParams("llama-70b"), jobs: func(int, uint64) ([]sim.Job, error) { return jobs, nil }}
	s := &simulator{ctx: t.Context(), progress: io.Discard}
	for _, target := range []float64{1, 5} {
		speed, err := s.speedFor(w, target, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := w.of(auto, jobs, 1)
		x.speed = speed
		o, err := x.run()
		if err != nil || math.Abs(o.outstanding-target) > target/10 {
			t.Errorf("speed %v: %v outstanding, want %v (%v)", speed, o.outstanding, target, err)
		}
	}
}

func TestFinalists(t *testing.T) {
	rows := []row{rowWith("a", .9, 1, 5), rowWith("b", .9, 1, 2), rowWith(auto, .9, 1, 9), rowWith("c", .9, 1, 4), rowWith("d", .9, 1, 3)}
	if got, want := finalists(rows), []string{auto, "b", "d", "c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := finalists(rows[2:3]), []string{auto}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

const second = time.Second

func ttft(seconds ...int) (list []time.Duration) {
	for _, s := range seconds {
		list = append(list, time.Duration(s)*second)
	}
	return list
}
