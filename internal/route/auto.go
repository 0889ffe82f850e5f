package route

import (
	"math"

	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/load"
)

// The automatic prefix length. A prompt's levels are walked from the shortest. As
// long as a level has more than one endpoint's part of the recent requests, its
// requests are spread over as many homes as that takes, those that come first in
// the order of the level's key; deeper levels choose among them. The first level
// that needs one home only has it. So the longest possible group of requests
// stays together, a conversation keeps its home, and a prefix that is hot has as
// many homes as it needs.
//
// The homes are where a request belongs. Where it goes is a matter of cost: the
// prefill that waits there and that of the request itself, by what is known to be
// warm where, times a factor for the requests outstanding. The constants were
// chosen by simulation (docs/RATIONALE.md).
const (
	// charsPerSecond is how fast an endpoint prefills, in characters a second:
	// 32,500 tokens. Too fast a guess sees queues too late, by a factor of three
	// without much harm; too slow a guess sees queues that are not there.
	charsPerSecond = 130_000
	// coldWeight is how much more a character costs that has to be prefilled than
	// one that waits before it: it also delays those behind, and takes room in the
	// cache.
	coldWeight = 12
	// fixedCost is a request's cost apart from its prefill, in seconds.
	fixedCost = 0.02
	// calm is added to outstanding requests before they are compared: with few,
	// one more or less means nothing.
	calm = 30
	// leastHeat is how many recent requests must have a beginning before it has
	// several homes: the first ones of a router are a large share of all that it
	// knows.
	leastHeat = 4
	// sharedBy divided by the recent requests that have a hot prefix is the part of
	// its prefill that one of them has to pay.
	sharedBy = 1
	// warmShare is the share of a prompt from which on an endpoint counts as warm.
	warmShare = 0.25
	// strayAlone and strayTogether are what it costs to leave the homes for an
	// endpoint that is not warm, in prefills of the whole prompt. Routers that do
	// not know of each other's choices have to stay with the homes, which they agree
	// on; one alone finds again what it placed elsewhere. Those who tell each other
	// (straySharing) do so a little later.
	strayAlone, strayTogether = 0.14, 6
)

// auto is the state of one decision.
type auto struct {
	t       *Table
	m       *memory
	s       *scratch
	request *Request

	homes  int     // how many of s.order are the homes
	key    uint64  // of the level that chose the last of them
	depth  int     // that level, in characters; 0 is the whole prompt
	share  float64 // of the recent requests, at that level
	hot    int     // characters of the prompt whose requests need several homes
	heat   float64 // recent requests that begin with these
	length int     // of the prompt, in characters
	second int     // the first of the key's order that is no home, or -1

	limits bounds
	mean   float64 // outstanding at an endpoint, the request included
	memory pressure
}

// memory is what is remembered of the requests before. It belongs to a router and
// outlives its tables.
type memory struct {
	*affinity.Memory
	scratch scratch
}

func newMemory() *memory { return &memory{Memory: affinity.New()} }

// scratch is what decisions use one after the other, so that none allocates. It
// belongs to the memory's lock.
type scratch struct {
	order   []int32 // candidates, the homes first
	home    []bool
	matched []int32 // levels that a candidate has served without a gap
	levels  [affinity.MaxLevels]uint64
}

func (s *scratch) reset(n int) {
	if cap(s.order) < n {
		s.order, s.home, s.matched = make([]int32, n), make([]bool, n), make([]int32, n)
	}
	s.order, s.home, s.matched = s.order[:n], s.home[:n], s.matched[:n]
	for i := range s.order {
		s.order[i], s.home[i], s.matched[i] = int32(i), false, 0
	}
}

// autoPrefix chooses by the automatic prefix length.
func (t *Table) autoPrefix(d *Decision, r *Request, threshold int) (load.Reservation, bool) {
	t.memory.Lock()
	defer t.memory.Unlock()
	a := t.newAuto(r, threshold)
	a.memory = t.fleet().pressure()
	n := a.walk(true)
	a.describe(d)
	return a.reserve(d, n, a.cheapest)
}

// reserve takes a slot at the candidate that choose names, and remembers that
// the n levels looked at go there. It is not ok where pick is not.
func (a *auto) reserve(d *Decision, n int, choose func() (int, Reason)) (load.Reservation, bool) {
	for {
		i, reason := choose()
		c := &a.t.candidates[i]
		var slot load.Reservation
		var seen int64
		ok := true
		if reason == Saturated && a.t.whole != nil {
			return slot, false
		}
		if reason == Saturated {
			slot, seen = c.counter.Take()
		} else if slot, seen, ok = c.counter.Reserve(a.limits.of(c)); !ok { // taken since
			continue
		}
		d.Reason, d.Load, d.Bound = reason, seen, a.limits.of(c)
		d.Warm = a.warm(i)
		d.Rank = a.rank(i)
		slot.Bring(a.brings(i))
		d.choose(c.address, d.homes[:])
		a.remember(i, n, a.request.Now)
		return slot, true
	}
}

// newAuto begins a decision. The memory must be locked until it ends.
func (t *Table) newAuto(r *Request, threshold int) auto {
	a := auto{t: t, m: t.memory, s: &t.memory.scratch, request: r, length: max(r.Chars, 1), second: -1}
	a.s.reset(len(t.candidates))
	a.limits = t.looseBounds(threshold)
	whole := t.fleet()
	a.mean = a.limits.perWeight * whole.totalWeight / float64(len(whole.candidates))
	return a
}

// fleet is the table of all endpoints, of which t may be a part.
func (t *Table) fleet() *Table {
	if t.whole != nil {
		return t.whole
	}
	return t
}

// walk finds what each candidate has served of the prompt, and with homes the
// homes. It returns how many levels it has looked at.
func (a *auto) walk(homes bool) (n int) {
	total := a.m.Begin()
	a.homes = len(a.t.candidates)
	last := min(len(a.request.Levels), affinity.MaxLevels)
	for level := 1; level <= last; level = affinity.NextLevel(level) {
		a.s.levels[n] = a.request.Levels[level-1]
		n++
	}
	if n == 0 { // it is shorter than a level
		a.s.levels[0] = a.request.Key
		heat := a.visit(a.request.Key, 0, 1)
		if homes {
			a.narrow(0, a.request.Key, heat, heat/total)
		}
		return 1
	}
	a.m.Fetch(a.s.levels[:n])
	before := 0
	for k, level := 0, 1; k < n; k, level = k+1, affinity.NextLevel(level) {
		heat := a.visit(a.s.levels[k], before, level)
		if homes && a.homes > 1 {
			a.narrow(level*LevelChars, a.s.levels[k], heat, heat/total)
		}
		before = level
	}
	// What follows the last level may be all that tells this prompt from others.
	if homes && a.homes > 1 && a.request.Key != a.s.levels[n-1] {
		_, heat := a.m.Visit(a.request.Key)
		a.narrow(0, a.request.Key, heat, heat/total)
	}
	return n
}

// visit notes who has served a level, and returns how many recent requests had
// it. before is the level that was visited before it.
func (a *auto) visit(key uint64, before, level int) (heat float64) {
	entry, heat := a.m.Visit(key)
	holders := entry.Holders()
	if len(a.t.candidates) > len(holders) && holders[len(holders)-1] != 0 {
		// More may have it than are remembered: all who have what is before it.
		for i := range a.s.matched {
			if a.s.matched[i] == int32(before) {
				a.s.matched[i] = int32(level)
			}
		}
		return heat
	}
	for _, id := range holders {
		if id == 0 {
			break
		}
		if i := a.t.candidateOf(id); i >= 0 && a.s.matched[i] == int32(before) {
			a.s.matched[i] = int32(level)
		}
	}
	return heat
}

// narrow chooses among the homes as many as the share of the recent requests takes
// that begin with so many characters; depth 0 is all of the prompt.
func (a *auto) narrow(depth int, key uint64, heat, share float64) {
	want := a.t.homesFor(heat, share)
	if want > 1 {
		a.hot, a.heat = depth, heat
		if depth == 0 {
			a.hot = a.length
		}
	}
	all := a.homes == len(a.t.candidates)
	if want < a.homes {
		a.t.index.Select(key, a.s.order[:a.homes], want)
	} else if !all {
		return
	}
	a.homes, a.key, a.depth, a.share = min(want, a.homes), key, depth, share
}

// homesFor is how many homes a beginning needs that so many of the recent requests,
// and such a share of them, have.
func (t *Table) homesFor(heat, share float64) int {
	if heat < leastHeat {
		return 1
	}
	return max(int(math.Ceil(share*float64(len(t.candidates)))), 1)
}

// describe notes in the decision what the walk has found.
func (a *auto) describe(d *Decision) {
	if a.homes == len(a.t.candidates) { // all are, in whatever order
		a.t.index.Select(a.key, a.s.order, min(MaxChoices, a.homes))
	}
	for _, i := range a.s.order[:a.homes] {
		a.s.home[i] = true
	}
	d.Key, d.Keyed = a.key, true
	d.Depth, d.Share, d.HomeCount = a.depth, a.share, a.homes
	var top [MaxChoices]int
	n := a.t.index.Top(a.key, top[:])
	a.second = -1
	k := 0
	for _, i := range a.s.order[:min(a.homes, MaxChoices)] {
		d.homes[k] = a.t.candidates[i].address
		k++
	}
	for _, i := range top[:n] {
		if a.s.home[i] {
			continue
		}
		if a.second < 0 {
			a.second = i
		}
		if k < MaxChoices {
			d.homes[k] = a.t.candidates[i].address
			k++
		}
	}
	d.HomeLoad = a.t.candidates[a.s.order[0]].counter.Load()
}

// cheapest returns the candidate with room that costs least, and why it is it.
// Without room anywhere it is the cheapest of all.
func (a *auto) cheapest() (best int, reason Reason) {
	best = -1
	lowest, homeFull := math.Inf(1), true
	full := -1
	lowestFull := math.Inf(1)
	for i := range a.t.candidates {
		c := &a.t.candidates[i]
		cost := a.cost(i)
		if c.counter.Load() >= a.limits.of(c) {
			if cost < lowestFull {
				full, lowestFull = i, cost
			}
			continue
		}
		if a.s.home[i] {
			homeFull = false
		}
		if cost < lowest || cost == lowest && a.t.index.Before(a.key, i, best) {
			best, lowest = i, cost
		}
	}
	switch {
	case best < 0:
		return full, Saturated
	case a.s.home[best]:
		return best, Home
	case a.isWarm(best):
		return best, WarmElsewhere
	case homeFull:
		return best, Overflow
	default:
		return best, Relief
	}
}

// cost is what the request costs at a candidate, in seconds: its work, by how full the
// candidate's memory is, and what it costs to leave the homes.
func (a *auto) cost(i int) float64 {
	cost := a.work(i) * a.memory.factor(&a.t.candidates[i])
	if !a.s.home[i] && !a.isWarm(i) {
		stray := a.t.stray * float64(a.length) / charsPerSecond
		if i != a.second {
			stray *= 2
		}
		cost += stray
	}
	return cost
}

// work is the prefill that waits at a candidate and that of the request, in
// seconds, weighed by how many requests are there already.
func (a *auto) work(i int) float64 {
	c := &a.t.candidates[i]
	cold := a.cold(i) / charsPerSecond
	wait := float64(a.m.Wait(c.id, a.request.Now)) / 1e9
	load := float64(c.counter.Load()) * c.perSpeed
	return (wait + (coldWeight*cold+fixedCost)*c.perSpeed) * (load + calm) / (a.mean + calm)
}

// cold is how many characters there are to prefill at a candidate. What is hot is
// prefilled for all who will have it, so at a home it counts for a part only.
func (a *auto) cold(i int) float64 {
	warm := a.warm(i)
	cold := float64(max(a.length-warm, 1))
	if hot := min(a.hot, a.length) - warm; hot > 0 && a.s.home[i] && a.heat > sharedBy {
		cold -= float64(hot) * (1 - sharedBy/a.heat)
	}
	return cold
}

// warm is how many characters of the prompt a candidate has served. Of one that
// goes on behind the last level it is taken to have served the rest too.
func (a *auto) warm(i int) int {
	if a.s.matched[i] == affinity.MaxLevels {
		return a.length
	}
	return min(int(a.s.matched[i])*LevelChars, a.length)
}

// isWarm reports whether a candidate has served a good part of what is behind the
// hot beginning, which is or soon will be warm everywhere.
func (a *auto) isWarm(i int) bool {
	hot := min(a.hot, a.length)
	warm := a.warm(i) - hot
	return warm > 0 && float64(warm) >= warmShare*float64(a.length-hot)
}

// rank is 0 for a home, 1 for the next of the key's order.
func (a *auto) rank(i int) int {
	switch {
	case a.s.home[i]:
		return 0
	case i == a.second:
		return 1
	}
	return NoRank
}

// remember notes where the request goes.
func (a *auto) remember(i, n int, now int64) {
	c := &a.t.candidates[i]
	cold := float64(a.length-a.warm(i)) / charsPerSecond * c.perSpeed
	a.m.Give(c.id, now, int64(cold*1e9))
	for _, key := range a.s.levels[:n] {
		a.m.Remember(key, c.id)
	}
	a.m.Place(c.id, a.unserved(i, n))
	a.m.Sample(a.s.levels[:n], a.length, len(a.request.Levels) == 0)
}

// looseBounds is bounds for decisions by cost. A fixed threshold is the same.
// The automatic one is wider than that of a fixed length: here the cost balances,
// and the bound is for what it does not see. In a part of a table nothing balances
// with the rest.
func (t *Table) looseBounds(threshold int) bounds {
	b := t.bounds(AutoConcurrencyThreshold)
	b.threshold, b.loose = int64(threshold), t.whole == nil
	return b
}

// looseBound is the bound for a mean load, the arriving request included.
func looseBound(mean float64) int64 {
	return int64(math.Ceil(max(2*mean, mean+32)))
}
