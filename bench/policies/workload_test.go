package main

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

// Another seed gives other hashes, and what was equal is equal.
func TestRehash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		s1, s2 := rapid.Uint64Range(2, 1000).Draw(t, "seed"), rapid.Uint64Range(1001, 2000).Draw(t, "other")
		if (a == b) != (rehash(a, s1) == rehash(b, s1)) {
			t.Errorf("%x and %x are mapped to %x and %x", a, b, rehash(a, s1), rehash(b, s1))
		}
		if rehash(a, s1) == rehash(a, s2) {
			t.Errorf("seeds %d and %d map %x to the same", s1, s2, a)
		}
	})
	requests := []trace.Request{{Input: 200, Output: 1, Chunks: []uint64{5, 6, 7}}, {Input: 200, Output: 1, Chunks: []uint64{5, 6, 8}}}
	jobs := jobsOf(requests, 1000, 2)
	if jobs[0].Chunks[1] != jobs[1].Chunks[1] || jobs[0].Chunks[2] == jobs[1].Chunks[2] || jobs[0].Chunks[0] == 5 || requests[0].Chunks[0] != 5 {
		t.Errorf("%v, %v of %v", jobs[0].Chunks, jobs[1].Chunks, requests)
	}
	if same := jobsOf(requests, 1000, firstSeed); same[0].Chunks[0] != 5 {
		t.Errorf("the first seed changes hashes: %v", same[0].Chunks)
	}
}

func TestCeiling(t *testing.T) {
	job := func(tokens int, chunks ...uint64) sim.Job { return sim.Job{Tokens: tokens, Chunks: chunks} }
	for _, c := range []struct {
		jobs []sim.Job
		want float64
	}{
		{nil, 0},
		{[]sim.Job{job(128, 1, 2), job(128, 3, 4)}, 0},
		{[]sim.Job{job(129, 1, 2), job(129, 1, 2)}, 128. / 258},
		{[]sim.Job{job(128, 1, 2), job(128, 1, 2)}, 64. / 256}, // the chunk of the last token is computed
	} {
		if got := ceiling(c.jobs); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.jobs, got, c.want)
		}
	}
}

// SageMaker's workloads have its hit rates, and come at the rate that is asked for.
func TestSageMakerWorkloads(t *testing.T) {
	p := published{documents: 40, conversations: 40, turns: 10}
	for _, c := range []struct {
		w        *workload
		requests int
		ceiling  float64
	}{{p.long(), 212, 0.77}, {p.short(), 400, 0.80}} {
		jobs, err := c.w.jobs(c.w.Cache, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := ceiling(jobs); len(jobs) != c.requests || math.Abs(got-c.ceiling) > 0.04 {
			t.Errorf("%s: %d requests, want %d, ceiling %.3f, want %.2f", c.w.Name, len(jobs), c.requests, got, c.ceiling)
		}
		if got := span(jobs, 10).Seconds() / float64(len(jobs)); got < 0.08 || got > 0.12 {
			t.Errorf("%s: %.3f s between requests at speed 10, want 0.1", c.w.Name, got)
		}
	}
}

func TestHotPrefixTraffic(t *testing.T) {
	h := hotPrefix{rate: 50, calm: 50, hot: 100, cooled: 50}
	for _, whole := range []bool{false, true} {
		jobs, isHot := h.jobs(1, whole)
		hot, all, wholes := 0, 0, make(map[uint64]int)
		for i := range jobs {
			j := &jobs[i]
			if isHot[j] {
				wholes[j.Whole]++
			}
			if s := j.At.Seconds(); s < 50 || s >= 150 {
				continue
			}
			all++
			if isHot[j] {
				hot++
			}
		}
		if share := float64(hot) / float64(all); math.Abs(share-hotShare) > 0.03 || math.Abs(float64(len(jobs))-10000) > 400 {
			t.Errorf("%d requests, %.3f of %d hot, want 0.6", len(jobs), share, all)
		}
		if whole != (len(wholes) == 1) {
			t.Errorf("whole prompt %v: %d different hot prompts", whole, len(wholes))
		}
	}
}

// breaking chooses always the same replica.
type breaking struct{ sim.Policy }

func (breaking) Members(time.Duration, []sim.Member)               {}
func (breaking) Pick(time.Duration, *sim.Query) sim.Choice         { return sim.Choice{Replica: 0} }
func (breaking) Done(time.Duration, int, *sim.Job)                 {}
func (breaking) First(time.Duration, int, *sim.Job, time.Duration) {}

// The check of the bound sees a policy that does not keep it, and only then.
func TestObserver(t *testing.T) {
	o := &observer{threshold: 2}
	p := o.watch(func(int, int) sim.Policy { return breaking{} })(0, 1)
	p.Members(0, []sim.Member{{Replica: 0, Weight: 1}, {Replica: 1, Weight: 1}})
	j := new(sim.Job)
	for i := range 4 {
		p.Pick(time.Duration(i)*time.Second, &sim.Query{Job: j})
	}
	if o.overBound != 2 {
		t.Errorf("%d over the bound, want 2", o.overBound)
	}
	for range 4 {
		p.Done(4*time.Second, 0, j)
	}
	if got := o.mean(); got != 2.5 {
		t.Errorf("%v outstanding in the mean, want (1+2+3+4)/4", got)
	}
	if o.total != 0 || o.outstanding[0] != 0 {
		t.Errorf("%d outstanding after all have ended, %d at replica 0", o.total, o.outstanding[0])
	}
	p.Members(0, []sim.Member{{Replica: 0, Weight: 1}})
	o.overBound = 0
	for range 4 {
		p.Pick(5*time.Second, &sim.Query{Job: j})
	}
	if o.overBound != 0 {
		t.Errorf("%d over the bound while no replica has room", o.overBound)
	}
}
