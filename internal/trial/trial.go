// Package trial tries a second policy beside a pool's own: as a [Shadow], which decides
// without effect and is compared with what really happens, and as a [Split], which really
// decides for a share of the conversations.
//
// A shadow is a world of its own: its requests hold slots of its own as long as the real
// ones run, and it remembers by itself what it would have sent where. What really
// happens is booked beside it by the same rules, over the same requests.
package trial

import (
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/internal/route"
)

// Settings say what is on trial. The zero Settings try nothing.
type Settings struct {
	// Share is the part of the conversations that the policy decides for, 0 to 1.
	Share float64
	// ShareLength is how many characters of a prompt's beginning tell conversations
	// apart, MinShareLength to MaxShareLength; it counts in steps of MinShareLength.
	ShareLength int
	Policy      route.Policy
}

// Trials are what is on trial in one pool, and what has come of it so far. Its methods
// may be called at once.
type Trials struct {
	router  *route.Router
	current atomic.Pointer[Current]
	totals  totals

	mu            sync.Mutex // serialises the changes
	shadow, split Settings
	// before is what had come when the policies on trial began to be.
	before struct {
		shadow ShadowReport
		split  SplitReport
	}
}

// Current is what is on trial at one moment; nil if nothing is, and otherwise one of the
// two at least.
type Current struct {
	Shadow *Shadow
	Split  *Split
}

// New returns the trials of the pool that a router decides for, none yet.
func New(router *route.Router) *Trials { return &Trials{router: router} }

// Current returns what to try on a request, nil for nothing.
func (t *Trials) Current() *Current {
	if t == nil {
		return nil
	}
	return t.current.Load()
}

// Set replaces what is on trial. A shadow keeps its world, and a split what it remembers,
// unless the policy is another. What runs in a world that is left ends there.
func (t *Trials) Set(shadow, split Settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if shadow == t.shadow && split == t.split {
		return
	}
	t.begin(shadow, split)
	t.shadow, t.split = shadow, split
	old, next := t.current.Load(), new(Current)
	if old == nil {
		old = new(Current)
	}
	next.Shadow = t.shadowed(old.Shadow, shadow)
	next.Split = t.divided(old.Split, split)
	if next.Shadow == nil && next.Split == nil {
		next = nil
	}
	t.current.Store(next)
	t.leave(old, next)
}

// begin notes what has come so far if another policy is to be tried, or another share of
// the requests is to be the split's, which is judged by that. t.mu is held.
func (t *Trials) begin(shadow, split Settings) {
	if shadow.Policy != t.shadow.Policy || t.shadow.Share == 0 {
		t.before.shadow = t.totals.shadowReport()
	}
	if split != t.split {
		t.before.split = t.totals.splitReport()
	}
}

// leave lets the worlds go that are not in use any more.
func (t *Trials) leave(old, next *Current) {
	if next == nil {
		next = new(Current)
	}
	if s := old.Shadow; s != nil && (next.Shadow == nil || next.Shadow.world != s.world) {
		t.router.Part(s.world.real)
		t.router.Part(s.world.shadow)
	}
	if s := old.Split; s != nil && next.Split == nil {
		t.router.Part(s.booked)
	}
}
