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

	mu  sync.Mutex // serialises the changes
	set fleet.Set
	// members are the addresses of the set: the counters and the memory are held
	// up while each of theirs is looked for.
	members map[string]bool
	policy  Policy
	memory  *memory
	around  surroundings
	twins   []*Router
}

// NewRouter returns a router with an empty membership and counters of its own.
func NewRouter(policy Policy) *Router { return NewRouterCounting(policy, load.NewTracker()) }

// NewRouterCounting returns a router with an empty membership whose counters are
// the tracker's: an endpoint that is a member of several routers' has one count.
func NewRouterCounting(policy Policy, tracker *load.Tracker) *Router {
	r := &Router{tracker: tracker, policy: policy, memory: newMemory(), around: surroundings{routers: 1, grown: newGrowth()}}
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

// MemoryBytes returns how large the router's memory of what was served where is. It
// waits for a decision under way.
func (r *Router) MemoryBytes() int {
	r.memory.Lock()
	defer r.memory.Unlock()
	return r.memory.Bytes()
}

// SetMembership replaces the membership.
func (r *Router) SetMembership(set fleet.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, members := r.members, addressesOf(set)
	r.set, r.members = set, members
	// The counters of the new members must not be forgotten, for the memberships of
	// other routers, before they are in use.
	r.tracker.Enroll(r, func(address string) bool { return members[address] || before[address] })
	r.publish()
	r.tracker.Retain(r, func(address string) bool { return members[address] })
	r.eachTwin(func(t *Router) { t.SetMembership(set) })
}

func addressesOf(set fleet.Set) map[string]bool {
	addresses := make(map[string]bool, set.Len())
	for i := range set.Len() {
		addresses[set.At(i).Address] = true
	}
	return addresses
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
// members, and whether they tell each other of these (see [Router.Given] and
// [Router.Placed]).
func (r *Router) SetRouters(n int, sharing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.around.routers == n && r.around.sharing == sharing {
		return
	}
	r.around.routers, r.around.sharing = n, sharing
	r.publish()
	r.eachTwin(func(t *Router) { t.SetRouters(n, false) })
}

// SetZone tells the zone in which the router is: endpoints there are preferred while
// they have room. Empty, the zones do not matter.
func (r *Router) SetZone(zone string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.around.zone == zone {
		return
	}
	r.around.zone = zone
	r.publish()
	r.eachTwin(func(t *Router) { t.SetZone(zone) })
}

// SetAdapters replaces the rules for LoRA adapters.
func (r *Router) SetAdapters(rules AdapterRules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.around.adapters, r.around.adapterModels = rules, rules.models()
	r.publish()
	r.eachTwin(func(t *Router) { t.SetAdapters(rules) })
}

func (r *Router) publish() {
	r.table.Store(newTable(r.set, r.policy, r.tracker, r.memory, r.around))
}
