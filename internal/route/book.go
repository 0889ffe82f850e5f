package route

import (
	"slices"
	"strings"

	"github.com/warmpath/warmpath/internal/load"
)

// Book notes that somebody else has sent a request to an endpoint, and returns how many
// characters of its prompt that endpoint had been sent before: by the rule of the
// automatic prefix length, whatever the table's policy is. It is not ok for an endpoint
// that may not be chosen, and for a request without a key.
func (t *Table) Book(address string, r *Request) (warm int, ok bool) {
	i, is := t.find(address)
	if !is || !r.Keyed {
		return 0, false
	}
	t.memory.Lock()
	defer t.memory.Unlock()
	a := t.newAuto(r, AutoConcurrencyThreshold)
	n := a.walk(false)
	warm = a.warm(i)
	a.remember(i, n, r.Now)
	return warm, true
}

// TakeAt takes a slot at an endpoint whatever its load; none at one that may not be
// chosen.
func (t *Table) TakeAt(address string) (slot load.Reservation) {
	if i, is := t.find(address); is {
		slot, _ = t.candidates[i].counter.Take()
	}
	return slot
}

// Balance returns how many requests run at the endpoint that has most for its weight,
// as if it had the mean weight, and how many run at the mean endpoint.
func (t *Table) Balance() (busiest, mean float64) {
	for i := range t.candidates {
		c := &t.candidates[i]
		n := float64(c.counter.Load())
		busiest, mean = max(busiest, n*c.perSpeed), mean+n
	}
	return busiest, mean / float64(max(len(t.candidates), 1))
}

// find returns the candidate of an address.
func (t *Table) find(address string) (i int, is bool) {
	return slices.BinarySearchFunc(t.candidates, address, func(c candidate, a string) int { return strings.Compare(c.address, a) })
}
