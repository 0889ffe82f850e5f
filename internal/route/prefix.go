package route

import (
	"github.com/warmpath/warmpath/internal/load"
)

// prefixAware chooses the first of the key's homes that has room. When none
// has, the least loaded candidate takes the request: a request is never
// refused here, and queueing is the model server's.
func (t *Table) prefixAware(d *Decision, threshold int) (load.Reservation, bool) {
	var homes [MaxChoices]int
	n := t.index.Top(d.Key, homes[:])
	for i := range n {
		d.homes[i] = t.candidates[homes[i]].address
	}
	home := &t.candidates[homes[0]]
	limits := t.bounds(threshold)
	d.Bound = limits.of(home)
	r, seen, ok := home.counter.Reserve(d.Bound)
	d.HomeLoad = seen
	if ok {
		d.Reason, d.Rank, d.Load = Home, 0, seen
		d.choose(home.address, d.homes[1:n])
		return r, true
	}
	return t.overflow(d, limits, d.homes[:n])
}

// overflow walks the key's homes for the first with room. It is one scan for
// the best-placed candidate that has room, whatever its rank.
func (t *Table) overflow(d *Decision, limits bounds, homes []string) (load.Reservation, bool) {
	for {
		i := t.firstWithRoom(d.Key, limits)
		if i < 0 {
			if !t.allFull(limits) { // a slot came free behind the scan
				continue
			}
			if t.whole != nil {
				return load.Reservation{}, false
			}
			return t.saturated(d, limits, homes), true
		}
		c := &t.candidates[i]
		bound := limits.of(c)
		r, seen, ok := c.counter.Reserve(bound)
		if !ok { // taken since; each round of this loop is another request's progress
			continue
		}
		d.Reason, d.Load, d.Bound = Overflow, seen, bound
		d.Rank = t.index.Rank(d.Key, i)
		d.chooseInOrder(c.address, homes)
		return r, true
	}
}

// firstWithRoom returns the candidate that comes first in the key's order among
// those below their bound, or -1.
func (t *Table) firstWithRoom(key uint64, limits bounds) int {
	best := -1
	for i := range t.candidates {
		c := &t.candidates[i]
		if c.counter.Load() < limits.of(c) && (best < 0 || t.index.Before(key, i, best)) {
			best = i
		}
	}
	return best
}

func (t *Table) allFull(limits bounds) bool {
	return load.AllFull(len(t.candidates), func(i int) (*load.Counter, int64) {
		c := &t.candidates[i]
		return c.counter, limits.of(c)
	})
}

// saturated gives the request to the least loaded candidate, the earlier home
// of equal ones.
func (t *Table) saturated(d *Decision, limits bounds, homes []string) load.Reservation {
	d.Reason = Saturated
	for {
		best, seen := t.leastLoadedHome(d.Key)
		c := &t.candidates[best]
		r, before, ok := c.counter.Reserve(seen + 1)
		if !ok { // others took its slots since; look again
			continue
		}
		d.Rank, d.Bound, d.Load = t.index.Rank(d.Key, best), limits.of(c), before
		d.chooseInOrder(c.address, homes)
		return r
	}
}

func (t *Table) leastLoadedHome(key uint64) (best int, seen int64) {
	best, lowest := -1, 0.0
	for i := range t.candidates {
		cost, outstanding := t.cost(i)
		if best < 0 || cost < lowest || cost == lowest && t.index.Before(key, i, best) {
			best, lowest, seen = i, cost, outstanding
		}
	}
	return best, seen
}
