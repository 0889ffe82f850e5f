package trial

import "github.com/warmpath/warmpath/internal/route"

// Arm is whose policy a request is decided by.
type Arm uint8

// The arms. NoArm: the pool is not split, or Envoy's configuration says how the request
// is to be routed.
const (
	NoArm Arm = iota
	MainArm
	SplitArm
)

// String returns the name that spans and metrics use; it is empty for NoArm.
func (a Arm) String() string {
	return [...]string{NoArm: "", MainArm: "main", SplitArm: "split"}[min(a, SplitArm)]
}

// Split is a policy that really decides for a share of the conversations. Both arms
// count on the same endpoints: a bound is the endpoint's.
type Split struct {
	share
	policy route.Policy
	booked *route.Router
	totals *totals
}

// divided returns the split of some settings, nil if they want none. What is remembered
// is what was sent where, so it holds whatever the policy is.
func (t *Trials) divided(before *Split, s Settings) *Split {
	if s.Share <= 0 {
		return nil
	}
	next := &Split{share: newShare(s, splitSalt), policy: s.Policy, totals: &t.totals}
	if before != nil {
		next.booked = before.booked
		return next
	}
	next.booked = t.router.Twin(route.Policy{})
	t.totals.split.Store(true)
	return next
}

// Policy returns the policy of the split arm.
func (s *Split) Policy() route.Policy { return s.policy }

// ReadLength is how many characters of a prompt tell which arm it belongs to.
func (s *Split) ReadLength() int { return s.level * route.LevelChars }

// Arm returns the arm of a prompt, of which ReadLength characters at least were read, or
// all. The key is that of all that was read.
func (s *Split) Arm(levels []uint64, key uint64) Arm {
	if s.has(levels, key) {
		return SplitArm
	}
	return MainArm
}

// Count counts a decision of an arm, if it was on a prompt: nothing else tells whose a
// request is. It notes where the request was sent: that is known of the requests of both
// arms, whatever their strategies remember.
func (s *Split) Count(arm Arm, a *Asked) {
	if !a.Request.Keyed {
		arm = NoArm
	}
	total := &s.totals.arms[arm]
	total.reasons[a.Reason].Add(1)
	if warm, ok := s.booked.Table().Book(a.Chosen, &a.Request); ok && arm != NoArm {
		total.cached(warm, a.Request.Chars)
	}
}
