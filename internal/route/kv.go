package route

import (
	"github.com/warmpath/warmpath/internal/load"
)

// kvAware chooses by what is known to be warm where: by cost, as the automatic
// prefix length does, but without homes. Where nobody is warm, or those who are
// have so much to do that another would have prefilled the whole prompt before,
// the least loaded takes it.
func (t *Table) kvAware(d *Decision, r *Request, threshold int) (slot load.Reservation, ok bool) {
	t.memory.Lock()
	defer t.memory.Unlock()
	a := t.newAuto(r, threshold)
	d.Key, d.Keyed = r.Key, true
	n := a.walk(false)
	first := t.drawEqual(r.Random, -1) // of equal ones: the next from here on
	chosen := 0
	slot, ok = a.reserve(d, n, func() (i int, reason Reason) {
		chosen, reason = a.warmest(first)
		return chosen, reason
	})
	if !ok {
		return slot, false
	}
	alternatives, k := t.alternatives(chosen, a.nextTo(chosen, first))
	d.choose(d.Chosen, alternatives[:k])
	return slot, true
}

// nextTo returns the candidate that costs least but one.
func (a *auto) nextTo(chosen, first int) int {
	n := len(a.t.candidates)
	next := lowest{}
	for k := range n {
		if i := (first + k) % n; i != chosen {
			next.take(i, a.work(i))
		}
	}
	return next.i
}

// warmest returns the candidate with room that costs least, if it is warm, and
// the least loaded otherwise. With no room anywhere it is the least loaded of all.
func (a *auto) warmest(first int) (int, Reason) {
	n := len(a.t.candidates)
	best, least, full := lowest{}, lowest{}, lowest{}
	for k := range n {
		i := (first + k) % n
		c := &a.t.candidates[i]
		load, outstanding := a.t.cost(i)
		if outstanding >= a.limits.of(c) {
			full.take(i, load)
			continue
		}
		best.take(i, a.work(i))
		least.take(i, load)
	}
	switch {
	case !best.any:
		return full.i, Saturated
	case a.warm(best.i) > 0:
		return best.i, Warm
	default:
		return least.i, ByLeastOutstanding
	}
}

// lowest is the first of the lowest cost.
type lowest struct {
	i    int
	cost float64
	any  bool
}

func (l *lowest) take(i int, cost float64) {
	if !l.any || cost < l.cost {
		*l = lowest{i, cost, true}
	}
}
