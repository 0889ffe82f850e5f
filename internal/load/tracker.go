package load

import (
	"slices"
	"sync"
)

// Tracker owns the counters of all endpoints by address. Counters outlive the
// membership snapshots that refer to them, so a change of membership loses no
// count, and an endpoint that is removed and comes back while a request still
// runs on it finds that request counted.
type Tracker struct {
	mu       sync.Mutex
	counters map[string]*entry
}

type entry struct {
	counter Counter
	// missed is how many retentions in a row did not name the endpoint.
	missed int
}

// graceRetentions is how many snapshots in a row must leave an idle endpoint
// out before its counter is dropped: a request that still decides on the
// snapshot before may reserve on it.
const graceRetentions = 2

// NewTracker returns a tracker without endpoints.
func NewTracker() *Tracker { return &Tracker{counters: make(map[string]*entry)} }

// Counter returns the counter of an address, a new one if there is none.
func (t *Tracker) Counter(address string) *Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.counters[address]
	if e == nil {
		e = new(entry)
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

// Retain forgets the counters of endpoints that are idle and that the last
// calls did not name, so that the tracker does not grow with every endpoint
// that ever existed.
func (t *Tracker) Retain(named func(address string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, e := range t.counters {
		switch {
		case named(address):
			e.missed = 0
		case e.counter.Outstanding() > 0:
		case e.missed+1 >= graceRetentions:
			delete(t.counters, address)
		default:
			e.missed++
		}
	}
}

// Count is the load of one endpoint at one moment.
type Count struct {
	Address     string
	Outstanding int64
}

// Snapshot returns the load of every endpoint known, in address order.
func (t *Tracker) Snapshot() []Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := make([]Count, 0, len(t.counters))
	for address, e := range t.counters {
		counts = append(counts, Count{address, e.counter.Outstanding()})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return counts
}
