package trial

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
)

func members(t testing.TB, n int) fleet.Set {
	t.Helper()
	var endpoints []fleet.Endpoint
	for i := range n {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: uint32(1 + i%3)})
	}
	set, duplicates := fleet.NewSet(endpoints)
	if len(duplicates) > 0 {
		t.Fatal(duplicates)
	}
	return set
}

// pool is a router with its trials, as a server has them.
type pool struct {
	router *route.Router
	trials *Trials
	now    int64
	held   []held
}

type held struct {
	slot  load.Reservation
	slots Slots
}

func newPool(t testing.TB, policy route.Policy, n int) *pool {
	r := route.NewRouter(policy)
	r.SetMembership(members(t, n))
	return &pool{router: r, trials: New(r)}
}

// send decides a request, and has what is on trial decide it after that.
func (p *pool) send(r route.Request) (d route.Decision, again route.Decision) {
	p.now += 1e6
	r.Now = p.now
	own := r
	own.Key = keyFor(p.router.Table().Policy(), r)
	d, slot := p.router.Table().Pick(own)
	p.held = append(p.held, held{slot: slot})
	current := p.trials.Current()
	if current == nil {
		return d, again
	}
	a := Asked{Request: r, Key: r.Key, Chosen: d.Chosen, Reason: d.Reason}
	if current.Split != nil {
		current.Split.Count(current.Split.Arm(r.Levels, r.Key), &a)
	}
	if current.Shadow != nil {
		a.Key = keyFor(current.Shadow.Policy(), r)
		current.Shadow.Decide(&a, &p.held[len(p.held)-1].slots)
	}
	return d, a.again
}

func (p *pool) end(i int) {
	p.held[i].slot.Release()
	p.held[i].slots.Release()
	p.held = append(p.held[:i], p.held[i+1:]...)
}

// keyFor is what a policy makes its key of.
func keyFor(p route.Policy, r route.Request) uint64 {
	if n := p.PrefixLength / route.LevelChars; p.Strategy == route.PrefixAware && p.PrefixLength > 0 && n <= len(r.Levels) {
		return r.Levels[n-1]
	}
	return r.Key
}

// prompt is a request of a conversation at some turn: its levels are those of its
// system prompt and of the turns before.
func prompt(system, conversation, turn int) route.Request {
	r := route.Request{Keyed: true}
	key := mixed(uint64(system) + 1)
	for level := range 4 + 2*turn {
		if level >= 4 {
			key ^= uint64(conversation+1) << 20
		}
		key = mixed(key + uint64(level))
		r.Levels = append(r.Levels, key)
	}
	r.Key, r.Chars = mixed(key+99), len(r.Levels)*route.LevelChars+17
	return r
}

func drawPolicy(t *rapid.T, name string) route.Policy {
	return route.Policy{
		Strategy:             rapid.SampledFrom(route.Strategies()).Draw(t, name),
		PrefixLength:         rapid.SampledFrom([]int{route.AutoPrefixLength, 1024, 2048, 8192}).Draw(t, name+" length"),
		ConcurrencyThreshold: rapid.SampledFrom([]int{route.AutoConcurrencyThreshold, 1, 3, 10}).Draw(t, name+" threshold"),
	}
}

// drive sends requests and ends some, at random, and calls f after each.
func drive(t *rapid.T, f func(step int, r route.Request), end func(random uint64)) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	steps := rapid.IntRange(1, 200).Draw(t, "steps")
	for step := range steps {
		q := prompt(r.IntN(3), r.IntN(20), r.IntN(6))
		if r.IntN(10) == 0 {
			q = route.Request{}
		}
		q.Random = r.Uint64()
		f(step, q)
		for range r.IntN(3) {
			end(r.Uint64())
		}
	}
}

// A shadow of the pool's own policy over all requests does what the pool does.
func TestShadowOfTheSamePolicyDoesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := drawPolicy(t, "policy")
		p := newPool(failing(t), policy, rapid.IntRange(1, 4).Draw(t, "endpoints"))
		p.trials.Set(Settings{Share: 1, ShareLength: 256, Policy: policy}, Settings{})
		drive(t, func(step int, r route.Request) {
			if d, again := p.send(r); d != again {
				t.Fatalf("request %d: %+v, the shadow %+v", step, d, again)
			}
		}, func(random uint64) {
			if len(p.held) > 0 {
				p.end(int(random % uint64(len(p.held))))
			}
		})
		report, _ := p.trials.Report()
		if report.Moved != 0 || fmt.Sprint(report.Real) != fmt.Sprint(report.Shadow) || report.Outstanding != int64(len(p.held)) {
			t.Fatalf("%d moved, %d outstanding of %d\nreal   %+v\nshadow %+v", report.Moved, report.Outstanding, len(p.held), report.Real, report.Shadow)
		}
	})
}

// What a shadow decides is what a router of its own would have decided, and the pool
// decides as if there were none.
func TestShadowDecidesAsARouterOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		real, other := drawPolicy(t, "real"), drawPolicy(t, "shadow")
		n := rapid.IntRange(1, 4).Draw(t, "endpoints")
		p, alone, twin := newPool(failing(t), real, n), newPool(failing(t), real, n), newPool(failing(t), other, n)
		p.trials.Set(Settings{Share: 1, ShareLength: 256, Policy: other}, Settings{})
		change := rapid.IntRange(0, 200).Draw(t, "change")
		drive(t, func(step int, r route.Request) {
			if step == change {
				for _, x := range []*pool{p, alone, twin} {
					x.router.SetMembership(members(failing(t), max(n-2, 1)))
				}
			}
			d, again := p.send(r)
			if without, _ := alone.send(r); d != without {
				t.Fatalf("request %d: %+v, without a shadow %+v", step, d, without)
			}
			if want, _ := twin.send(r); again != want {
				t.Fatalf("request %d: the shadow %+v, want %+v", step, again, want)
			}
		}, func(random uint64) {
			if len(p.held) == 0 {
				return
			}
			i := int(random % uint64(len(p.held)))
			for _, x := range []*pool{p, alone, twin} {
				x.end(i)
			}
		})
		for len(p.held) > 0 {
			p.end(0)
		}
		if report, _ := p.trials.Report(); report.Outstanding != 0 {
			t.Fatalf("%d outstanding at the end", report.Outstanding)
		}
	})
}

// failing lets helpers of tests fail a property.
func failing(t *rapid.T) testing.TB { return fatal{TB: nil, t: t} }

type fatal struct {
	testing.TB
	t *rapid.T
}

func (f fatal) Helper()           {}
func (f fatal) Fatal(args ...any) { f.t.Fatal(args...) }

// A changed share goes on in the same world, another policy in a new one; what runs in
// one that was left ends there, and nobody follows the router any more that is not asked.
func TestWorldsComeAndGo(t *testing.T) {
	p := newPool(t, route.Policy{}, 4)
	prefix := route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 2}
	p.trials.Set(Settings{Share: 1, ShareLength: 256, Policy: prefix}, Settings{})
	first := p.trials.Current().Shadow
	p.send(prompt(1, 1, 1))
	p.trials.Set(Settings{Share: 0.999999, ShareLength: 256, Policy: prefix}, Settings{Share: 0.5, ShareLength: 256, Policy: prefix})
	second := p.trials.Current()
	if second.Shadow.world != first.world || second.Shadow.Outstanding() != 1 {
		t.Error("a changed share lost the world")
	}
	p.send(prompt(1, 2, 1))
	p.trials.Set(Settings{Share: 1, ShareLength: 256}, Settings{Share: 0.6, ShareLength: 256, Policy: route.Policy{}})
	third := p.trials.Current()
	if third.Shadow.world == first.world || third.Shadow.Outstanding() != 0 || first.Outstanding() != 2 {
		t.Errorf("another policy has %d outstanding in its world, the left one %d", third.Shadow.Outstanding(), first.Outstanding())
	}
	if third.Split.booked != second.Split.booked {
		t.Error("a changed split forgot what was sent where")
	}
	p.send(prompt(1, 3, 1))
	p.trials.Set(Settings{}, Settings{})
	if p.trials.Current() != nil {
		t.Error("something is still on trial")
	}
	for len(p.held) > 0 {
		p.end(0)
	}
	if n := first.Outstanding() + third.Shadow.Outstanding(); n != 0 {
		t.Errorf("%d outstanding in the worlds that were left", n)
	}
	p.router.SetMembership(members(t, 2))
	for _, left := range []*route.Router{first.world.real, first.world.shadow, third.Shadow.world.real, third.Split.booked} {
		if left.Table().Candidates() != 4 {
			t.Error("a world that was left still follows the router")
		}
	}
	if report, split := p.trials.Report(); report.Real.Decisions() != 3 || split.Main.Decisions()+split.Split.Decisions() != 2 {
		t.Errorf("%+v, %+v: the counts do not outlive the trials", report, split)
	}
}

// A request that goes where nobody can be chosen any more leaves nothing behind.
func TestShadowOfWhoHasLeft(t *testing.T) {
	p := newPool(t, route.Policy{}, 4)
	p.trials.Set(Settings{Share: 1, ShareLength: 256}, Settings{Share: 1, ShareLength: 256})
	a := Asked{Request: prompt(1, 1, 1), Chosen: "10.9.9.9:80"}
	var slots Slots
	current := p.trials.Current()
	current.Split.Count(SplitArm, &a)
	current.Shadow.Decide(&a, &slots)
	if report, _ := p.trials.Report(); report.Outstanding != 0 || report.Real.Decisions() != 0 {
		t.Errorf("%+v", report)
	}
}

// A request that another endpoint served than the chosen one counts there in what really
// happens, and stays where it is in the shadow's world.
func TestShadowFollowsWhoServed(t *testing.T) {
	p := newPool(t, route.Policy{}, 4)
	p.trials.Set(Settings{Share: 1, ShareLength: 256}, Settings{})
	shadow := p.trials.Current().Shadow
	var slots Slots
	shadow.Decide(&Asked{Request: prompt(1, 1, 1), Chosen: "10.0.0.1:80"}, &slots)
	real := func(address string) int64 {
		for _, c := range shadow.world.real.Loads().Snapshot() {
			if c.Address == address {
				return c.Outstanding
			}
		}
		return 0
	}
	for _, step := range []struct {
		served        string
		first, second int64
	}{
		{"10.0.0.1:80", 1, 0},
		{"10.0.0.2:80", 0, 1},
		{"10.9.9.9:80", 0, 0}, // nobody knows it
		{"10.0.0.2:80", 0, 0},
	} {
		shadow.Served(step.served, &slots)
		if first, second := real("10.0.0.1:80"), real("10.0.0.2:80"); first != step.first || second != step.second || shadow.Outstanding() != 1 {
			t.Errorf("served by %s: %d and %d run really, %d in the shadow", step.served, first, second, shadow.Outstanding())
		}
	}
	if slots.Release(); shadow.Outstanding() != 0 {
		t.Error("the shadow keeps it")
	}
}

// A pool without trials has none on trial.
func TestNoTrials(t *testing.T) {
	var none *Trials
	if none.Current() != nil || New(route.NewRouter(route.Policy{})).Current() != nil {
		t.Error("something is on trial")
	}
	if shadow, split := New(route.NewRouter(route.Policy{})).Report(); shadow != nil || split != nil {
		t.Errorf("%v, %v", shadow, split)
	}
	if len(route.Reasons()) != reasons {
		t.Errorf("%d reasons, want %d", reasons, len(route.Reasons()))
	}
}

// The state tells what has come since the policy is on trial, whatever came before; of a
// split since its share is what it is.
func TestStateBeginsWithThePolicy(t *testing.T) {
	p := newPool(t, route.Policy{}, 4)
	one, other := route.Policy{Strategy: route.LeastOutstandingRequests}, route.Policy{Strategy: route.KVAware}
	send := func(n int) {
		for i := range n {
			p.send(prompt(1, i, 1))
			p.end(0)
		}
	}
	set := func(share float64, policy route.Policy) {
		s := Settings{Share: share, ShareLength: 256, Policy: policy}
		p.trials.Set(s, s)
	}
	for i, step := range []struct {
		share        float64
		policy       route.Policy
		send         int
		since, split uint64
	}{
		{1, one, 3, 3, 3},
		{1, other, 4, 4, 4},
		{0.9999999, other, 5, 9, 5}, // the same trial of the shadow
		{0, other, 2, 9, 0},
		{1, other, 1, 1, 1},
	} {
		set(step.share, step.policy)
		send(step.send)
		s := p.trials.State()
		shadow, split := s.OfShadow, s.OfSplit.Main.Decisions()+s.OfSplit.Split.Decisions()
		if shadow.Real.Decisions() != step.since || shadow.Shadow.Decisions() != step.since || split != step.split || s.Shadow.Share != step.share {
			t.Errorf("step %d: %d and %d decisions of the shadow, %d of the split, want %d and %d", i, shadow.Real.Decisions(), shadow.Shadow.Decisions(), split, step.since, step.split)
		}
		if n := shadow.Real.Characters; n != step.since*uint64(6*route.LevelChars+17) || shadow.Moved > step.since || shadow.Real.Mean < 0.2*float64(step.since) {
			t.Errorf("step %d: %+v", i, shadow)
		}
	}
	if report, _ := p.trials.Report(); report.Real.Decisions() != 13 {
		t.Errorf("%d decisions since the start, want 13", report.Real.Decisions())
	}
}
