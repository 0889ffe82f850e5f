package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func address(i int) string { return fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1) }

// members makes a set of endpoints of weight 1; states are those of the first.
func members(n int, states ...fleet.State) fleet.Set {
	endpoints := make([]fleet.Endpoint, n)
	for i := range endpoints {
		endpoints[i] = fleet.Endpoint{Address: address(i), Weight: 1}
		if i < len(states) {
			endpoints[i].State = states[i]
		}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

// script drives a machine through the lines of a test: each is a time in
// seconds, an event and, after "=", the view that it must leave. Endpoints are
// numbered. Letters of a view: s, h, u for the states, in the order of the
// endpoints, a digit after h for a factor below 1 in tenths, ! for panic, ? while it settles.
type script struct {
	options Options
	lines   string
}

func (s script) run(t *testing.T) {
	t.Helper()
	m := NewMachine(s.options)
	for line := range strings.Lines(s.lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		event, want, _ := strings.Cut(line, "=")
		before := m.View()
		changed, isMembership := play(t, m, event)
		after := m.View()
		if got := letters(after); got != strings.TrimSpace(want) {
			t.Fatalf("%s: got %s", line, got)
		}
		if !isMembership && changed != (!slices.Equal(before.Endpoints, after.Endpoints) || before.Panic != after.Panic) {
			t.Fatalf("%s: changed = %v\nfrom %+v\nto   %+v", line, changed, before, after)
		}
	}
}

func play(t *testing.T, m *Machine, event string) (changed, isMembership bool) {
	t.Helper()
	var seconds float64
	var verb string
	var i, n int
	if _, err := fmt.Sscan(event, &seconds, &verb, &i, &n); err != nil && verb == "" {
		t.Fatalf("line %q: %v", event, err)
	}
	now := at(seconds)
	switch verb {
	case "set":
		m.SetMembers(members(i), now)
		return false, true
	case "good":
		return m.Probed(address(i), now, ""), false
	case "bad":
		return m.Probed(address(i), now, "status 503"), false
	case "fail": // n requests
		return m.Requests(address(i), now, Outcome{Failures: n, Last: ServerError}), false
	case "serve":
		return m.Requests(address(i), now, Outcome{Succeeded: true, Failures: n}), false
	case "pass":
		return m.Advance(now), false
	}
	t.Fatalf("line %q: unknown event %q", event, verb)
	return false, false
}

func letters(v View) string {
	var b strings.Builder
	for _, e := range v.Endpoints {
		b.WriteByte(e.State.String()[0])
		if e.Factor < 1 {
			fmt.Fprintf(&b, "%.0f", e.Factor*10)
		}
	}
	return b.String() + []string{Calm: "", Panicking: "!", Settling: "?"}[v.Panic]
}

func with(change func(*Options)) Options {
	o := Defaults()
	o.SlowStart = 0
	if change != nil {
		change(&o)
	}
	return o
}

func TestProbes(t *testing.T) {
	for name, s := range map[string]script{
		"the first members count as healthy, later ones start": {with(nil), `
			0 set 0  =
			1 set 2  = hh
			2 set 3  = hhs
			3 bad 2  = hhs
			4 bad 2  = hhs
			5 bad 2  = hhs
			6 bad 2  = hhs
			900 good 2 = hhh`},
		"three failed probes in a row, two good ones in a row": {with(nil), `
			0 set 2 = hh
			1 bad 0 = hh
			2 bad 0 = hh
			3 good 0 = hh
			4 bad 0 = hh
			5 bad 0 = hh
			6 bad 0 = uh
			7 good 0 = uh
			8 bad 0 = uh
			9 good 0 = uh
			10 good 0 = hh
			11 bad 0 = hh
			12 bad 0 = hh
			13 bad 0 = uh`},
		"nobody is healthy": {with(nil), `
			0 set 1 = h
			1 set 2 = hs
			2 bad 0 = hs
			3 bad 0 = hs
			4 bad 0 = us!
			5 good 1 = uh?`},
	} {
		t.Run(name, s.run)
	}
}

func TestRequests(t *testing.T) {
	for name, s := range map[string]script{
		"five failed requests in the window eject": {with(nil), `
			0 set 2 = hh
			1 fail 0 4 = hh
			2 fail 0 1 = uh`},
		"many at once too": {with(nil), `
			0 set 2 = hh
			1 fail 0 1000000 = uh`},
		"outside the window they do not": {with(nil), `
			0 set 2 = hh
			0 fail 0 1 = hh
			20 fail 0 3 = hh
			30.1 fail 0 1 = hh
			50 fail 0 1 = uh`},
		"a success ends a run": {with(nil), `
			0 set 2 = hh
			1 fail 0 4 = hh
			2 serve 0 4 = hh
			3 fail 0 1 = uh`},
		"a good probe does not": {with(nil), `
			0 set 2 = hh
			1 fail 0 4 = hh
			2 good 0 = hh
			3 fail 0 1 = uh`},
		"the first ejection ends by good probes, the next ones last": {with(nil), `
			0 set 2 = hh
			1 fail 0 5 = uh
			2 good 0 = uh
			3 good 0 = hh
			4 fail 0 1 = hh
			4 fail 0 4 = uh
			5 good 0 = uh
			6 good 0 = uh
			13.9 pass = uh
			14 pass = hh
			15 fail 0 5 = uh
			16 good 0 = uh
			17 good 0 = uh
			34.9 pass = uh
			35 good 0 = hh
			336 fail 0 5 = uh
			337 good 0 = uh
			338 good 0 = hh`},
		"time alone ends none with probes": {with(nil), `
			0 set 2 = hh
			1 fail 0 5 = uh
			10000 pass = uh`},
		"an ejected endpoint whose probes fail": {with(nil), `
			0 set 4 = hhhh
			1 fail 0 5 = uhhh
			1 fail 1 5 = uuhh
			2 fail 2 5 = uuhh
			2 bad 0 = uuhh
			3 bad 0 = uuhh
			4 bad 0 = uuhh
			5 bad 0 = uuhh
			6 fail 2 1 = uuuh`},
		"at most half is ejected, later requests try again": {with(nil), `
			0 set 5 = hhhhh
			1 fail 0 5 = uhhhh
			2 fail 1 5 = uuhhh
			3 fail 2 5 = uuhhh
			4 good 0 = uuhhh
			5 good 0 = huhhh
			6 fail 2 1 = huuhh`},
		"an ejection as long after the return as the longest one counts on": {with(func(o *Options) { o.Probing = false }), `
			0 set 2 = hh
			0 fail 0 5 = uh
			10 pass = hh
			310 fail 0 5 = uh
			329.9 pass = uh
			330 pass = hh
			630.1 fail 0 5 = uh
			640.1 pass = hh`},
		"the only endpoint is not ejected": {with(func(o *Options) { o.MaxEjected = 1 }), `
			0 set 1 = h
			1 fail 0 50 = h`},
		"nor the last healthy one": {with(func(o *Options) { o.MaxEjected = 1 }), `
			0 set 3 = hhh
			1 fail 0 5 = uhh
			1 fail 1 5 = uuh
			1 fail 2 5 = uuh
			1 bad 2 = uuh
			1 bad 2 = uuh
			1 bad 2 = uuu!`},
		"without probes ejections end by time, doubling": {with(func(o *Options) { o.Probing = false; o.MaxBackoff = 25 * time.Second }), `
			0 set 1 = h
			0 set 2 = hh
			1 fail 0 5 = uh
			10.9 pass = uh
			11 pass = hh
			12 fail 0 5 = uh
			31.9 pass = uh
			32 pass = hh
			33 fail 0 5 = uh
			57.9 pass = uh
			58 pass = hh
			84 fail 0 5 = uh
			94 pass = hh`},
		"failures 0 ejects never": {with(func(o *Options) { o.Failures = 0 }), `
			0 set 2 = hh
			1 fail 0 1000 = hh`},
		"what is not a member is ignored": {with(nil), `
			0 set 2 = hh
			1 set 1 = h
			2 bad 1 = h
			3 fail 1 9 = h
			4 set 2 = hs`},
		"slow start of new ones and of those that come back": {with(func(o *Options) { o.SlowStart = 30 * time.Second }), `
			0 set 2 = hh
			0 set 3 = hhs
			1 good 2 = hhh1
			3.9 pass = hhh1
			4 pass = hhh2
			14 pass = hhh5
			15 bad 2 = hhh5
			16 bad 2 = hhh5
			17 bad 2 = hhu
			18 good 2 = hhu
			19 good 2 = hhh1
			48.9 pass = hhh9
			49 pass = hhh`},
		"slow start without probes": {with(func(o *Options) { o.SlowStart = 30 * time.Second; o.Probing = false }), `
			0 set 1 = h
			0 set 2 = hh1
			100 pass = hh`},
	} {
		t.Run(name, s.run)
	}
}

func TestCauseSaysWhy(t *testing.T) {
	m := NewMachine(with(nil))
	m.SetMembers(members(3), at(0))
	m.Requests(address(0), at(1), Outcome{Failures: 5, Last: Unreachable})
	for i := range 3 {
		m.Probed(address(1), at(float64(i)), "status 503")
	}
	for i, want := range []string{"5 requests failed, the last: unreachable", "3 probes failed, the last: status 503", ""} {
		if e, _ := m.View().Find(address(i)); e.Cause != want {
			t.Errorf("cause = %q, want %q", e.Cause, want)
		}
	}
	for range 3 {
		m.Probed(address(0), at(5), "timeout")
	}
	if e, _ := m.View().Find(address(0)); !strings.HasPrefix(e.Cause, "3 probes failed") {
		t.Errorf("cause after failed probes = %q", e.Cause)
	}
}

func TestPanic(t *testing.T) {
	once := func(o *Options) { o.FailedProbes, o.GoodProbes, o.SlowStart = 1, 1, 10*time.Second }
	for name, s := range map[string]script{
		"the unhealthy ones stay in use until they are back, and none starts slowly": {with(once), `
			0 set 3  = hhh
			1 bad 0  = uhh
			2 bad 1  = uuh
			3 bad 2  = uuu!
			4 good 1 = uhu?
			5 good 0 = hhu?
			6 good 2 = hhh`},
		"or until it has settled by time": {with(once), `
			0 set 3  = hhh
			1 bad 0  = uhh
			2 bad 1  = uuh
			3 bad 2  = uuu!
			4 good 1 = uhu?
			6.9 pass = uhu?
			7 pass   = uhu
			8 good 2 = uhh1`},
		"a second panic begins anew": {with(once), `
			0 set 2  = hh
			1 bad 0  = uh
			2 bad 1  = uu!
			3 good 1 = uh?
			5 bad 1  = uu!
			7 pass   = uu!
			8 good 0 = hu?
			10 pass  = hu?
			11 pass  = hu`},
		"those that never were healthy are not used meanwhile, and start slowly": {with(once), `
			0 set 2  = hh
			1 bad 0  = uh
			2 bad 1  = uu!
			3 set 3  = uus!
			4 good 0 = hus?
			5 good 2 = huh1?
			6 good 1 = hhh1`},
		"a fleet of new ones": {with(once), `
			0 set 1  = h
			1 bad 0  = u!
			2 set 0  =
			3 set 2  = ss!
			4 good 0 = hs
			5 good 1 = hh1`},
		"without a time to settle": {with(func(o *Options) { once(o); o.Settle = 0 }), `
			0 set 2  = hh
			1 bad 0  = uh
			2 bad 1  = uu!
			3 good 1 = uh`},
	} {
		t.Run(name, s.run)
	}
}

// An endpoint that the membership itself does not use neither makes a panic nor
// takes part in the share that may be ejected.
func TestMembershipsOwnStates(t *testing.T) {
	m := NewMachine(with(nil))
	m.SetMembers(members(3, fleet.Draining, fleet.Unhealthy), at(0))
	if m.Requests(address(2), at(1), Outcome{Failures: 5}) {
		t.Error("the only one in use was ejected")
	}
	for range 3 {
		m.Probed(address(2), at(1), "refused")
	}
	if v := m.View(); v.Panic != Panicking {
		t.Errorf("no panic: %+v", v)
	}
	m.SetMembers(members(2, fleet.Draining, fleet.Draining), at(2))
	if v := m.View(); v.Panic != Calm {
		t.Error("panic where the membership has none healthy itself")
	}
}

func TestShareThatMayBeEjected(t *testing.T) {
	for _, tc := range []struct {
		share      float64
		n, ejected int
	}{{0, 10, 0}, {0.29, 100, 29}, {0.5, 2, 1}, {0.5, 3, 1}, {0.3, 10, 3}, {1, 4, 3}} {
		m := NewMachine(with(func(o *Options) { o.MaxEjected = tc.share }))
		m.SetMembers(members(tc.n), at(0))
		for i := range tc.n {
			m.Requests(address(i), at(1), Outcome{Failures: 9})
		}
		if got := m.View().Count(Unhealthy); got != tc.ejected {
			t.Errorf("%v of %d: %d ejected, want %d", tc.share, tc.n, got, tc.ejected)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	o := Options{FailedProbes: 101, Failures: 1, MaxEjected: 1.5, MinBackoff: -1, MaxBackoff: -2, SlowStart: -1}
	err := o.Validate()
	for _, want := range []string{
		"failed probes 101", "good probes 0", "window 0s", "max ejected 1.5", "min backoff -1ns", "max backoff -2ns", "slow start -1ns", "min fraction 0,",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// What comes in a thousand times a second, and changes nothing, is free.
func TestEventsDoNotAllocate(t *testing.T) {
	m := NewMachine(Defaults())
	m.SetMembers(members(1000), at(0))
	a := address(7)
	if n := testing.AllocsPerRun(1000, func() {
		m.Probed(a, at(1), "")
		m.Probed(a, at(1), "refused")
		m.Requests(a, at(1), Outcome{Failures: 1})
		m.Requests(a, at(1), Outcome{Succeeded: true})
		m.Advance(at(1))
	}); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}

func BenchmarkMachine(b *testing.B) {
	m := NewMachine(Defaults())
	set := members(1000)
	m.SetMembers(set, at(0))
	a := address(7)
	b.Run("probe", func(b *testing.B) {
		for b.Loop() {
			m.Probed(a, at(1), "")
		}
	})
	b.Run("advance", func(b *testing.B) {
		for b.Loop() {
			m.Advance(at(1))
		}
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			m.View()
		}
	})
	b.Run("apply", func(b *testing.B) {
		v := m.View()
		for b.Loop() {
			Apply(set, v)
		}
	})
}
