package route

import (
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

// Router publishes tables. Membership and policy change by building a new table
// and swapping one pointer, so a request sees one or the other, never a mix.
type Router struct {
	tracker *load.Tracker
	table   atomic.Pointer[Table]

	mu      sync.Mutex // serialises the changes
	set     fleet.Set
	policy  Policy
	memory  *memory
	routers int
}

// NewRouter returns a router with an empty membership.
func NewRouter(policy Policy) *Router {
	r := &Router{tracker: load.NewTracker(), policy: policy, memory: newMemory(), routers: 1}
	r.publish()
	return r
}

// Table returns the snapshot to decide a request on.
func (r *Router) Table() *Table { return r.table.Load() }

// Loads returns the load counters of all endpoints.
func (r *Router) Loads() *load.Tracker { return r.tracker }

// Forgotten returns how many levels of prompts the router has forgotten since the
// start to make room for newer ones. It waits for a decision under way.
func (r *Router) Forgotten() uint64 {
	r.memory.Lock()
	defer r.memory.Unlock()
	return r.memory.Forgotten()
}

// SetMembership replaces the membership.
func (r *Router) SetMembership(set fleet.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = set
	r.publish()
	r.tracker.Retain(func(address string) bool {
		_, member := set.Index(address)
		return member
	})
}

// SetPolicy replaces the policy.
func (r *Router) SetPolicy(policy Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy = policy
	r.publish()
}

// Membership returns the current membership.
func (r *Router) Membership() fleet.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set
}

// SetRouters tells how many routers, this one included, send requests to the
// members without knowing of each other's.
func (r *Router) SetRouters(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.routers == n {
		return
	}
	r.routers = n
	r.publish()
}

func (r *Router) publish() {
	r.table.Store(newTable(r.set, r.policy, r.tracker, r.memory, r.routers))
}
