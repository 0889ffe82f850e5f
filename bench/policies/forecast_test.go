package main

import (
	"math"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trial"
)

// shadowing is a policy that has a shadow.
type shadowing struct {
	router *route.Router
	trials *trial.Trials
	byName map[string]int
	held   map[*sim.Job]*shadowed
}

type shadowed struct {
	slot  load.Reservation
	slots trial.Slots
}

func newShadowing(real, shadow route.Policy, share float64) *shadowing {
	p := &shadowing{router: route.NewRouter(real), byName: make(map[string]int), held: make(map[*sim.Job]*shadowed)}
	p.trials = trial.New(p.router)
	p.trials.Set(trial.Settings{Share: share, ShareLength: 256, Policy: shadow}, trial.Settings{})
	return p
}

// Members implements sim.Policy.
func (p *shadowing) Members(_ time.Duration, members []sim.Member) {
	var endpoints []fleet.Endpoint
	for _, m := range members {
		endpoints = append(endpoints, fleet.Endpoint{Address: m.Address, Weight: uint32(m.Weight)})
		p.byName[m.Address] = m.Replica
	}
	set, _ := fleet.NewSet(endpoints)
	p.router.SetMembership(set)
}

// Pick implements sim.Policy.
func (p *shadowing) Pick(now time.Duration, q *sim.Query) sim.Choice {
	r := route.Request{
		Key: q.Job.Whole, Keyed: true, Levels: q.Job.Chunks[:min(len(q.Job.Chunks), 512)], Chars: 4 * q.Job.Tokens,
		Now: int64(now), Random: q.Random,
	}
	key := func(by route.Policy) uint64 {
		n := by.PrefixLength / route.LevelChars
		if by.Strategy == route.PrefixAware && n > 0 && n <= len(r.Levels) {
			return r.Levels[n-1]
		}
		return r.Key
	}
	own := r
	own.Key = key(p.router.Table().Policy())
	d, slot := p.router.Table().Pick(own)
	held := &shadowed{slot: slot}
	p.held[q.Job] = held
	shadow := p.trials.Current().Shadow
	shadow.Decide(&trial.Asked{Request: r, Key: key(shadow.Policy()), Chosen: d.Chosen, Reason: d.Reason}, &held.slots)
	return sim.Choice{Replica: p.byName[d.Chosen]}
}

// First implements sim.Policy.
func (p *shadowing) First(time.Duration, int, *sim.Job, time.Duration) {}

// Done implements sim.Policy.
func (p *shadowing) Done(_ time.Duration, _ int, j *sim.Job) {
	p.held[j].slot.Release()
	p.held[j].slots.Release()
	delete(p.held, j)
}

// On real traces: what a shadow foretells of a policy is what comes when the policy is
// switched on, and nothing is left in its world at the end.
func TestShadowForetells(t *testing.T) {
	random, least := route.Policy{}, route.Policy{Strategy: route.LeastOutstandingRequests}
	auto := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
	fixed := route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 16}
	for _, c := range []struct {
		trace        string
		first        int // requests of it
		real, shadow route.Policy
		share        float64
		within       float64
	}{
		{"realhumaneval", 3000, random, auto, 1, 0.02},
		{"realhumaneval", 3000, auto, least, 1, 0.02},
		{"mooncake", 1000, random, auto, 1, 0.02},
		{"mooncake", 1000, least, fixed, 1, 0.02},
		{"realhumaneval", 3000, random, auto, 0.25, 0.15}, // of few conversations
	} {
		foretold, came := foretell(t, c.trace, c.first, c.real, c.shadow, c.share), foretell(t, c.trace, c.first, c.shadow, c.shadow, 1)
		now, _ := foretold.report.Real.HitRate()
		got, _ := foretold.report.Shadow.HitRate()
		want, _ := came.report.Real.HitRate()
		t.Logf("%s, %v to %v, share %v: hits %.1f %% now, %.1f %% foretold, %.1f %% came (engines %.1f and %.1f %%); busiest over mean %.2f, %.2f, %.2f; overflow foretold %.3f, came %.3f; %d of %d moved",
			c.trace, c.real, c.shadow, c.share, 100*now, 100*got, 100*want, 100*foretold.hits, 100*came.hits,
			foretold.report.Real.Imbalance(), foretold.report.Shadow.Imbalance(), came.report.Real.Imbalance(),
			foretold.report.Shadow.Overflow(), came.report.Real.Overflow(), foretold.report.Moved, foretold.report.Real.Decisions())
		if math.Abs(got-want) > c.within || math.Abs(want-came.hits) > 0.02 {
			t.Errorf("%s, %+v: a hit rate of %.3f foretold, %.3f came, %.3f in the engines", c.trace, c.shadow, got, want, came.hits)
		}
	}
}

type foretold struct {
	report *trial.ShadowReport
	hits   float64 // in the engines' caches
}

func foretell(t *testing.T, name string, first int, real, shadow route.Policy, share float64) foretold {
	t.Helper()
	for _, x := range allTraces() {
		if x.name != name {
			continue
		}
		loaded, err := x.load("../data")
		if err != nil {
			t.Fatal(err)
		}
		w := loaded[1] // at the speed at which requests queue
		jobs, err := w.jobs(w.Cache, firstSeed)
		if err != nil {
			t.Fatal(err)
		}
		var p *shadowing
		c := sim.Config{Jobs: jobs[:min(first, len(jobs))], Speed: w.Speed, Seed: 1, Policy: func(int, int) sim.Policy {
			p = newShadowing(real, shadow, share)
			return p
		}}
		for range w.Replicas {
			c.Replicas = append(c.Replicas, sim.Replica{Params: w.params})
		}
		result, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		report, _ := p.trials.Report()
		if report.Outstanding != 0 {
			t.Errorf("%s: %d outstanding in the shadow's world at the end", name, report.Outstanding)
		}
		return foretold{report, result.HitRate()}
	}
	t.Fatalf("no trace %q", name)
	return foretold{}
}
