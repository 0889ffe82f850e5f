package route

import (
	"math"
	"math/bits"
	"slices"

	"github.com/warmpath/warmpath/internal/load"
)

// Request is what the choice depends on.
type Request struct {
	// Key is the prefix key; used if Keyed.
	Key   uint64
	Keyed bool
	// Levels are the keys of the first LevelChars, 2*LevelChars, ... characters, and
	// Chars is how many characters were read: for the automatic prefix length.
	Levels []uint64
	Chars  int
	// Model is what the request asks for, and Adapter the LoRA adapter that it names
	// apart from that; empty if unknown.
	Model, Adapter string
	// Now is the time in ns from any beginning; it must not go back.
	Now int64
	// Random is a uniform random number: the randomness of this one decision.
	Random uint64
}

// Pick chooses an endpoint by the table's own policy: see [Table.PickBy].
func (t *Table) Pick(r Request) (Decision, load.Reservation) { return t.PickBy(t.policy, r) }

// PickBy chooses an endpoint by a policy and reserves a slot there. Requests of
// all policies count alike. The reservation holds nothing if there are no
// endpoints. It never refuses a request.
func (t *Table) PickBy(policy Policy, r Request) (d Decision, slot load.Reservation) {
	slot = t.PickInto(&d, policy, &r)
	return d, slot
}

// PickInto is [Table.PickBy] with a decision of the caller's. Decisions are large:
// where each step had one of its own, stacks of 8 KiB were too small, and every open
// stream keeps its stack.
func (t *Table) PickInto(d *Decision, policy Policy, r *Request) (slot load.Reservation) {
	if name := t.adapterOf(r); name != "" && len(t.candidates) > 0 {
		return t.pickAdapter(d, policy, r, name)
	}
	if t.near != nil {
		if slot, ok := t.near.pick(d, policy, r); ok {
			t.addChoices(d, r.Random)
			return slot
		}
	}
	slot, _ = t.pick(d, policy, r)
	return slot
}

// pick is PickInto among the table's own candidates. It is not ok if the table is a
// part of another and none of them has room.
func (t *Table) pick(d *Decision, policy Policy, r *Request) (slot load.Reservation, ok bool) {
	*d = Decision{
		Strategy:   policy.Strategy,
		Rank:       NoRank,
		Candidates: len(t.candidates),
		Membership: t.membership,
	}
	switch {
	case len(t.candidates) == 0:
		d.Reason = NoEndpoints
		return load.Reservation{}, true
	case len(t.candidates) == 1:
		d.Reason = SingleCandidate
		return t.take(d, 0, nil, policy.partThreshold())
	case policy.Strategy == Random:
		d.Reason = ByRandom
		return t.random(d, r.Random)
	case policy.Strategy == PrefixAware && r.Keyed && policy.PrefixLength == AutoPrefixLength:
		return t.autoPrefix(d, r, policy.ConcurrencyThreshold)
	case policy.Strategy == PrefixAware && r.Keyed:
		d.Key, d.Keyed = r.Key, true
		return t.prefixAware(d, policy.ConcurrencyThreshold)
	case policy.Strategy == KVAware && r.Keyed:
		return t.kvAware(d, r, policy.ConcurrencyThreshold)
	case policy.NeedsKey():
		d.Reason = NoKey
	default:
		d.Reason = ByLeastOutstanding
	}
	return t.leastOutstanding(d, r.Random, policy.partThreshold())
}

// addChoices names further endpoints to try, of all there are.
func (t *Table) addChoices(d *Decision, random uint64) {
	var more [MaxChoices]string
	if d.Keyed {
		var homes [MaxChoices]int
		for k, i := range homes[:t.index.Top(d.Key, homes[:])] {
			more[k] = t.candidates[i].address
		}
	} else {
		for k := range more {
			more[k] = t.candidates[(random+uint64(k))%uint64(len(t.candidates))].address
		}
	}
	n := len(d.Choices())
	for _, address := range more {
		if n < MaxChoices && address != "" && !slices.Contains(d.choices[:n], address) {
			d.choices[n] = address
			n++
		}
	}
	d.Candidates = len(t.candidates)
}

// take chooses candidate i whatever its load; in a part of a table if it has room.
func (t *Table) take(d *Decision, i int, alternatives []string, threshold int) (slot load.Reservation, ok bool) {
	c := &t.candidates[i]
	if t.whole == nil {
		slot, d.Load = c.counter.Take()
	} else if slot, d.Load, ok = c.counter.Reserve(t.bounds(threshold).of(c)); !ok {
		return slot, false
	}
	d.choose(c.address, alternatives)
	return slot, true
}

// random chooses by weight; the second choice is another draw.
func (t *Table) random(d *Decision, random uint64) (load.Reservation, bool) {
	first := t.draw(random, -1)
	second := t.draw(next(random), first)
	alternatives, n := t.alternatives(first, second)
	if slot, ok := t.take(d, first, alternatives[:n], AutoConcurrencyThreshold); ok {
		return slot, true
	}
	return t.leastOutstanding(d, random, AutoConcurrencyThreshold) // who has room, if anybody
}

// alternatives names the second choice and a third, so that every retry has an
// endpoint of ours to go to.
func (t *Table) alternatives(first, second int) (addresses [MaxChoices - 1]string, n int) {
	addresses[0] = t.candidates[second].address
	third := (second + 1) % len(t.candidates)
	if third == first {
		third = (third + 1) % len(t.candidates)
	}
	if third == second {
		return addresses, 1
	}
	addresses[1] = t.candidates[third].address
	return addresses, 2
}

// draw returns a candidate at random by weight, other than the one left out.
func (t *Table) draw(random uint64, except int) int {
	if t.equalWeights {
		return t.drawEqual(random, except)
	}
	total := t.totalWeight
	if except >= 0 {
		total -= t.candidates[except].weight
	}
	mark := float64(random>>11) / (1 << 53) * total
	last := 0
	for i := range t.candidates {
		if i == except {
			continue
		}
		last = i
		if mark -= t.candidates[i].weight; mark < 0 {
			break
		}
	}
	return last
}

// drawEqual is draw without a scan. The high word of a product maps a random
// number to 0..n-1 evenly.
func (t *Table) drawEqual(random uint64, except int) int {
	n := uint64(len(t.candidates))
	if except < 0 {
		i, _ := bits.Mul64(random, n)
		return int(i)
	}
	i, _ := bits.Mul64(random, n-1)
	if int(i) >= except {
		i++
	}
	return int(i)
}

// next is the following number of the sequence that a random number starts
// (the splitmix64 step).
func next(random uint64) uint64 {
	random += 0x9e3779b97f4a7c15
	random = (random ^ random>>30) * 0xbf58476d1ce4e5b9
	random = (random ^ random>>27) * 0x94d049bb133111eb
	return random ^ random>>31
}

// leastOutstanding chooses the least loaded candidate for its weight. Ties are
// broken at random, because a fixed rule would send every router's next
// request to the same endpoint.
func (t *Table) leastOutstanding(d *Decision, random uint64, threshold int) (slot load.Reservation, ok bool) {
	for {
		i, second, seen := t.leastLoaded(random)
		c := &t.candidates[i]
		if t.whole != nil && seen >= t.bounds(threshold).of(c) {
			return slot, false
		}
		slot, d.Load, ok = c.counter.Reserve(seen + 1)
		if !ok { // others took its slots since; look again
			continue
		}
		alternatives, n := t.alternatives(i, second)
		d.choose(c.address, alternatives[:n])
		return slot, true
	}
}

// leastLoaded returns the candidate with the least load after one more request
// for its weight, the load it saw there, and the runner-up. Of equal ones it
// takes one at random, and the next of them as the runner-up.
func (t *Table) leastLoaded(random uint64) (best, second int, seen int64) {
	lowest, next := math.Inf(1), math.Inf(1)
	ties := uint64(0)
	for i := range t.candidates {
		cost, outstanding := t.cost(i)
		switch {
		case cost < lowest:
			second, next = best, lowest
			best, lowest, seen, ties = i, cost, outstanding, 1
		case cost == lowest:
			ties++
		case cost < next:
			second, next = i, cost
		}
	}
	if ties > 1 {
		return t.tied(lowest, int(random%ties), best, seen)
	}
	return best, second, seen
}

// cost is the load of a candidate after one more request for its weight.
func (t *Table) cost(i int) (cost float64, outstanding int64) {
	c := &t.candidates[i]
	outstanding = c.counter.Load()
	return float64(outstanding+1) * c.perWeight, outstanding
}

// tied returns the skip-th of the candidates of a cost and the one after it, in
// a circle. Loads change meanwhile: it may find fewer, and then falls back to
// the first and its neighbour.
func (t *Table) tied(cost float64, skip, first int, seen int64) (best, second int, _ int64) {
	best, second = first, first
	for i := range t.candidates {
		c, outstanding := t.cost(i)
		if c != cost {
			continue
		}
		switch skip {
		case 0:
			best, seen = i, outstanding
		case -1:
			return best, i, seen
		}
		skip--
	}
	if best == second {
		second = (first + 1) % len(t.candidates)
	}
	return best, second, seen
}
