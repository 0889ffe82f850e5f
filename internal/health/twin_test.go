package health

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
)

// twin is the machine written to be obviously right: it keeps every event since
// the last change of state and reads them anew each time.
type twin struct {
	o     Options
	begun bool
	nodes map[string]*twinNode
	set   fleet.Set
	panic Panic
	// calm is when the panic that settles is over.
	calm time.Time
}

type twinNode struct {
	state     State
	since     time.Time
	probes    []bool      // since the last change
	failures  []time.Time // since the last change or success
	ejected   bool
	ejections int
	held      time.Time
	slow      bool // in the slow start that began at since
}

func (n *twinNode) to(s State, now time.Time) {
	*n = twinNode{state: s, since: now, ejections: n.ejections, held: n.held}
}

// endsWith tells whether the last count probes were all like this.
func (n *twinNode) endsWith(result bool, count int) bool {
	return len(n.probes) >= count && !slices.Contains(n.probes[len(n.probes)-count:], !result)
}

func (w *twin) setMembers(set fleet.Set, now time.Time) {
	old := w.nodes
	w.nodes, w.set = make(map[string]*twinNode), set
	for _, e := range set.Endpoints() {
		n := old[e.Address]
		switch {
		case n != nil:
		case !w.begun:
			n = &twinNode{state: Healthy, since: now}
		case w.o.Probing:
			n = &twinNode{state: Starting, since: now}
		default:
			n = &twinNode{state: Healthy, since: now, slow: true}
		}
		w.nodes[e.Address] = n
	}
	w.begun = w.begun || set.Len() > 0
	w.judge(now)
}

// numbers counts the endpoints that the membership has healthy by their state.
func (w *twin) numbers() (of map[State]int) {
	of = make(map[State]int)
	for _, e := range w.set.Endpoints() {
		if e.State == fleet.Healthy {
			of[w.nodes[e.Address].state]++
		}
	}
	return of
}

// judge says which phase of a panic it is, after something has happened.
func (w *twin) judge(now time.Time) {
	of := w.numbers()
	switch {
	case of[Healthy] == 0 && of[Starting]+of[Unhealthy] > 0:
		w.panic = Panicking
	case of[Healthy] == 0 || of[Unhealthy] == 0 || w.o.Settle == 0:
		w.panic = Calm
	case w.panic == Panicking:
		w.panic, w.calm = Settling, now.Add(w.o.Settle)
	case w.panic == Settling && !now.Before(w.calm):
		w.panic = Calm
	}
}

// inUse tells whether requests go to an endpoint at this moment.
func (w *twin) inUse(a string) bool {
	i, _ := w.set.Index(a)
	state := w.nodes[a].state
	return w.set.At(i).State == fleet.Healthy &&
		(state == Healthy || w.panic == Panicking || w.panic == Settling && state == Unhealthy)
}

func (w *twin) mayReturn(n *twinNode, now time.Time) bool {
	switch n.state {
	case Starting:
		return n.endsWith(true, 1)
	case Unhealthy:
		return !now.Before(n.held) && (!w.o.Probing || n.endsWith(true, w.o.GoodProbes))
	default:
		return false
	}
}

func (w *twin) pass(now time.Time) {
	slow := make(map[*twinNode]bool)
	for a, n := range w.nodes {
		if w.mayReturn(n, now) {
			slow[n] = !w.inUse(a)
		}
	}
	for n, is := range slow {
		n.to(Healthy, now)
		n.slow = is
	}
	w.judge(now)
}

func (w *twin) probed(a string, now time.Time, good bool) {
	n := w.nodes[a]
	if n == nil {
		return
	}
	n.probes = append(n.probes, good)
	failed := n.endsWith(false, w.o.FailedProbes)
	if failed && (n.state == Healthy || n.state == Unhealthy && n.ejected) {
		n.to(Unhealthy, now)
		w.judge(now)
	}
	w.pass(now)
}

func (w *twin) requests(a string, now time.Time, o Outcome) {
	n := w.nodes[a]
	if n == nil || n.state != Healthy {
		return
	}
	if o.Succeeded {
		n.failures = nil
	}
	for range o.Failures {
		n.failures = append(n.failures, now)
	}
	if o.Failures == 0 || w.o.Failures == 0 || len(n.failures) < w.o.Failures {
		return
	}
	if now.Sub(n.failures[len(n.failures)-w.o.Failures]) > w.o.Window {
		return
	}
	of, ejected := w.numbers(), 0
	wanted, healthy := of[Healthy]+of[Unhealthy]+of[Starting], of[Healthy]
	for _, e := range w.set.Endpoints() {
		if e.State == fleet.Healthy && w.nodes[e.Address].ejected {
			ejected++
		}
	}
	i, _ := w.set.Index(a)
	if w.set.At(i).State != fleet.Healthy || healthy < 2 || float64(ejected+1) > w.o.MaxEjected*float64(wanted)+1e-9 {
		return
	}
	if now.Sub(n.since) > w.o.MaxBackoff {
		n.ejections = 0
	}
	n.ejections++
	n.held = now.Add(w.o.backoff(n.ejections))
	n.to(Unhealthy, now)
	n.ejected = true
	w.judge(now)
}

func (w *twin) factor(n *twinNode, now time.Time) float64 {
	if !n.slow || n.state != Healthy || w.o.SlowStart == 0 || now.Sub(n.since) >= w.o.SlowStart {
		return 1
	}
	step := int(now.Sub(n.since) * slowStartSteps / w.o.SlowStart)
	return w.o.MinFraction + (1-w.o.MinFraction)*float64(step)/slowStartSteps
}

func anyOptions(t *rapid.T) Options {
	o := Defaults()
	o.Probing = rapid.Bool().Draw(t, "probing")
	o.FailedProbes = rapid.IntRange(1, 4).Draw(t, "failed probes")
	o.GoodProbes = rapid.IntRange(1, 3).Draw(t, "good probes")
	o.Failures = rapid.IntRange(0, 4).Draw(t, "failures")
	o.MaxEjected = rapid.SampledFrom([]float64{0, 0.34, 0.5, 1}).Draw(t, "max ejected")
	o.Settle = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 30 * time.Second}).Draw(t, "settle")
	o.SlowStart = rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 30 * time.Second}).Draw(t, "slow start")
	return o
}

func anyMembers(t *rapid.T) fleet.Set {
	var endpoints []fleet.Endpoint
	for i := range 4 {
		if state := rapid.IntRange(-1, 9).Draw(t, "state"); state >= 0 {
			e := fleet.Endpoint{Address: address(i), Weight: uint32(i + 1)}
			if state < 3 {
				e.State = fleet.State(state)
			}
			endpoints = append(endpoints, e)
		}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

func TestMachineAgainstTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyOptions(t)
		m, w, now := NewMachine(o), &twin{o: o}, epoch
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			step(t, m, w, &now)
			m.Advance(now)
			w.pass(now)
			compare(t, m, w, now)
		}
	})
}

var events = []string{"good", "good", "good", "bad", "bad", "requests", "requests", "requests", "requests", "members"}

// step lets something happen in both.
func step(t *rapid.T, m *Machine, w *twin, now *time.Time) {
	// Moments at which something ends are the interesting ones.
	if next := m.NextChange(); !next.IsZero() && rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
		checkNothingBefore(t, m, next)
		*now = next
	} else {
		*now = now.Add(rapid.SampledFrom([]time.Duration{0, 500, 1000, 3000, 1000, 1000, 29_000, 31_000, 300_000}).Draw(t, "passed") * time.Millisecond)
	}
	a := address(rapid.IntRange(0, 3).Draw(t, "endpoint"))
	switch rapid.SampledFrom(events).Draw(t, "event") {
	case "members":
		set := anyMembers(t)
		m.SetMembers(set, *now)
		w.setMembers(set, *now)
	case "good":
		m.Probed(a, *now, "")
		w.probed(a, *now, true)
	case "bad":
		m.Probed(a, *now, "refused")
		w.probed(a, *now, false)
	default:
		o := Outcome{Succeeded: rapid.IntRange(0, 3).Draw(t, "success") == 0, Failures: rapid.IntRange(0, 3).Draw(t, "failures")}
		m.Requests(a, *now, o)
		w.requests(a, *now, o)
	}
}

// checkNothingBefore: a view stays what it is until the time that it names.
func checkNothingBefore(t *rapid.T, m *Machine, next time.Time) {
	before := m.View()
	if m.Advance(next.Add(-1)) || !slices.Equal(before.Endpoints, m.View().Endpoints) || before.Panic != m.View().Panic {
		t.Fatalf("changed before %v: %+v, then %+v", next, before, m.View())
	}
}

func compare(t *rapid.T, m *Machine, w *twin, now time.Time) {
	v := m.View()
	if len(v.Endpoints) != w.set.Len() {
		t.Fatalf("%d endpoints, want %d", len(v.Endpoints), w.set.Len())
	}
	for i, e := range w.set.Endpoints() {
		got, want := v.Endpoints[i], w.nodes[e.Address]
		if got.Address != e.Address || got.State != want.state || !got.Since.Equal(want.since) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		if diff := got.Factor - w.factor(want, now); diff > 1e-9 || diff < -1e-9 {
			t.Fatalf("factor %v, want %v", got.Factor, w.factor(want, now))
		}
	}
	if v.Panic != w.panic {
		t.Fatalf("panic %v, want %v with %v", v.Panic, w.panic, w.numbers())
	}
	if !v.NextChange.IsZero() && !v.NextChange.After(now) {
		t.Fatalf("next change at %v, which is not after %v", v.NextChange, now)
	}
	checkApplied(t, w.set, v)
}

// checkApplied: where the membership has a healthy endpoint so have the results,
// with the same members; only in a panic they are the membership itself.
func checkApplied(t *rapid.T, set fleet.Set, v View) {
	router, envoy := Apply(set, v)
	healthy := 0
	for i, e := range set.Endpoints() {
		r, n := router.At(i), envoy.At(i)
		if r.Address != e.Address || n.Address != e.Address || r.State != n.State || n.Weight != e.Weight || r.State < e.State {
			t.Fatalf("%+v became %+v and %+v", e, r, n)
		}
		if r.State == fleet.Healthy {
			healthy++
		}
	}
	if want := slices.ContainsFunc(set.Endpoints(), func(e fleet.Endpoint) bool { return e.State == fleet.Healthy }); want != (healthy > 0) {
		t.Fatalf("%d healthy after %+v", healthy, v)
	}
	if v.Panic == Panicking && (!router.Equal(set) || !envoy.Equal(set)) {
		t.Fatal("panic, and the result is not the membership")
	}
}
