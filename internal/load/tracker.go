package load

import (
	"slices"
	"sync"
)

// Tracker owns the counters of all endpoints by address. Counters outlive the
// membership snapshots that refer to them, so a change of membership loses no
// count, and an endpoint that is removed and comes back while a request still
// runs on it finds that request counted.
//
// Several memberships may share a tracker: an endpoint that is a member of two has
// one count.
type Tracker struct {
	mu       sync.Mutex
	counters map[string]*entry
	members  map[Owner]func(address string) bool
}

// Owner is whose membership it is: a pointer that is its own alone.
type Owner any

type entry struct {
	counter Counter
	// missed is how many retentions in a row each owner has made without the endpoint,
	// since it had it: those that have it, or had it a short time ago. What no owner had
	// has nobody's, under nil.
	missed map[Owner]int
}

// graceRetentions is how many memberships in a row must leave an idle endpoint
// out before its counter is dropped, of each owner that had it: a request that
// still decides on the owner's snapshot before may reserve on it.
const graceRetentions = 2

// NewTracker returns a tracker without endpoints.
func NewTracker() *Tracker {
	return &Tracker{counters: make(map[string]*entry), members: make(map[Owner]func(string) bool)}
}

// Counter returns the counter of an address, a new one if there is none.
func (t *Tracker) Counter(address string) *Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.counters[address]
	if e == nil {
		e = &entry{missed: map[Owner]int{nil: 0}}
		t.counters[address] = e
	}
	return &e.counter
}

// Lookup returns the counter of an address if there is one. It never makes
// one: addresses that Envoy reports must not make the tracker grow.
func (t *Tracker) Lookup(address string) (*Counter, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.counters[address]
	if e == nil {
		return nil, false
	}
	return &e.counter, true
}

// Enroll replaces an owner's membership and forgets nothing.
func (t *Tracker) Enroll(owner Owner, has func(address string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[owner] = has
}

// Retain replaces an owner's membership, and forgets the counters of endpoints that
// are idle and that no owner's last memberships have, so that the tracker does not
// grow with every endpoint that ever existed.
func (t *Tracker) Retain(owner Owner, has func(address string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[owner] = has
	for address, e := range t.counters {
		e.retained(owner, has(address))
		if len(e.missed) == 0 && e.counter.Outstanding() == 0 && !t.named(address) {
			delete(t.counters, address)
		}
	}
}

// retained notes whether an owner's new membership has the endpoint.
func (e *entry) retained(owner Owner, has bool) {
	if has {
		delete(e.missed, nil)
		e.missed[owner] = 0
		return
	}
	for _, o := range []Owner{owner, nil} {
		if missed, ok := e.missed[o]; ok {
			if e.missed[o] = missed + 1; missed+1 >= graceRetentions {
				delete(e.missed, o)
			}
		}
	}
}

// named reports whether any membership has the address. t.mu is held.
func (t *Tracker) named(address string) bool {
	for _, has := range t.members {
		if has(address) {
			return true
		}
	}
	return false
}

// Count is the load of one endpoint at one moment.
type Count struct {
	Address     string
	Outstanding int64
	// Others is what other routers have there.
	Others int64
}

// Snapshot returns the load of every endpoint known, in address order.
func (t *Tracker) Snapshot() []Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := make([]Count, 0, len(t.counters))
	for address, e := range t.counters {
		counts = append(counts, Count{address, e.counter.Outstanding(), e.counter.others.Load()})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return counts
}
