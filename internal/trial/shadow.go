package trial

import (
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
)

// Shadow is a policy that decides without effect.
type Shadow struct {
	share
	world  *world
	policy route.Policy
	totals *totals
}

// world is where a shadow decides, and beside it what really happens, by the same rules.
type world struct{ real, shadow *route.Router }

// shadowed returns the shadow of some settings, nil if they want none. It goes on in the
// world of the one before if its policy is the same.
func (t *Trials) shadowed(before *Shadow, s Settings) *Shadow {
	if s.Share <= 0 {
		return nil
	}
	next := &Shadow{share: newShare(s, shadowSalt), policy: s.Policy, totals: &t.totals}
	if before != nil && before.policy == s.Policy {
		next.world = before.world
		return next
	}
	next.world = &world{real: t.router.Twin(route.Policy{}), shadow: t.router.Twin(s.Policy)}
	t.totals.shadowed.Store(true)
	return next
}

// Policy returns the policy that is tried.
func (s *Shadow) Policy() route.Policy { return s.policy }

// Asked is a request that was decided, and what is needed to decide it again.
type Asked struct {
	// Request has all levels that are looked at, whatever the real policy read. Its key
	// is what the real policy made it of.
	Request route.Request
	// Key is what the policy on trial makes its key of.
	Key uint64
	// Own is the policy that Envoy's configuration gives the request; nil if that says
	// nothing, so that another policy of the pool would change it.
	Own *route.Policy
	// Chosen is where it really went, and Reason why.
	Chosen string
	Reason route.Reason

	again route.Decision
}

// Slots are what a request holds in a shadow's world. The zero Slots hold nothing.
type Slots struct{ real, shadow load.Reservation }

// Release gives the slots back; further releases do nothing.
func (s *Slots) Release() {
	s.real.Release()
	s.shadow.Release()
}

// Served moves a request in what really happens to the endpoint that served it: Envoy may
// have gone on from the one that was chosen. What the shadow would have done stays.
func (s *Shadow) Served(address string, slots *Slots) {
	if counter, ok := s.world.real.Loads().Lookup(address); ok {
		slots.real.Move(counter)
	} else {
		slots.real.Release() // it runs where nothing is counted
	}
}

// Decide decides a request again, if it is in the share, counts what came of it, and
// leaves what it holds in slots, which must hold nothing. The request's random number is
// that of the real decision: where both policies draw, they draw alike.
func (s *Shadow) Decide(a *Asked, slots *Slots) {
	r := &a.Request
	if r.Keyed && !s.has(r.Levels, r.Key) || !r.Keyed && !s.hasHash(r.Random) {
		return
	}
	real, shadow := s.world.real.Table(), s.world.shadow.Table()
	slots.real = real.TakeAt(a.Chosen)
	if !slots.real.Held() { // it has left, or was not known yet
		return
	}
	realWarm, known := real.Book(a.Chosen, r)
	key := r.Key
	r.Key = a.Key
	policy := s.policy
	if a.Own != nil {
		policy = *a.Own
	}
	slots.shadow = shadow.PickInto(&a.again, policy, r)
	r.Key = key
	warm := a.again.Warm
	if !a.again.WarmKnown() {
		warm, _ = shadow.Book(a.again.Chosen, r)
	}
	s.totals.moved.Add(truth(a.again.Chosen != a.Chosen))
	s.totals.real.count(a.Reason, real)
	s.totals.shadow.count(a.again.Reason, shadow)
	if known {
		s.totals.real.cached(realWarm, r.Chars)
		s.totals.shadow.cached(warm, r.Chars)
	}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Outstanding is how many requests hold slots in the shadow's world now.
func (s *Shadow) Outstanding() (sum int64) {
	for _, c := range s.world.shadow.Loads().Snapshot() {
		sum += c.Outstanding
	}
	return sum
}
