package route

import (
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// maxAdapters bounds the real adapters whose sets are kept, and as well those of names
// that a client may have made up.
const maxAdapters = 1024

// adapterSet is who serves an adapter, in order.
type adapterSet struct {
	name string
	real bool
	able *Table // all who can

	mu sync.Mutex
	// order is the beginning of the adapter's order of the candidates of able, as far
	// as it was needed.
	order []int32
	// first is the table of the first n, the last that was used.
	first *Table
	n     int
}

// adapterKey is what orders the endpoints for an adapter. Routers must agree on it.
func adapterKey(name string) uint64 { return xxhash.Sum64String("warmpath/adapter\x00" + name) }

// sort makes the order known to the first n. s.mu is held, or s is new.
func (s *adapterSet) sort(n int) {
	if all := len(s.able.candidates); n > len(s.order) && len(s.order) < all {
		s.order = s.able.index.First(adapterKey(s.name), max(n, 2*len(s.order)))
	}
}

// needed returns how many of the first there have to be for one of them to have room:
// all, if nobody has.
func (s *adapterSet) needed(limits bounds) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := len(s.able.candidates)
	for i := range all {
		s.sort(i + 1)
		if c := &s.able.candidates[s.order[i]]; c.counter.Load() < limits.of(c) {
			return i + 1
		}
	}
	return all
}

// table returns a table of the first n. n is less than there are.
func (s *adapterSet) table(n int) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil || s.n != n {
		s.sort(n)
		s.first, s.n = s.able.partOf(slices.Sorted(slices.Values(s.order[:n]))), n
	}
	return s.first
}
