package route

import (
	"github.com/warmpath/warmpath/internal/affinity"
)

// What several routers tell each other beside the loads: the prefill that each sends
// to an endpoint, and which beginnings of prompts are warm there since. Only the
// automatic prefix length and KVAware use it.

// straySharing is what strayAlone is for routers that tell each other: what one has
// placed elsewhere the others know a moment later.
const straySharing = 2

// Share begins or ends keeping what is to be told of.
func (r *Router) Share(on bool) {
	m := r.Table().memory
	m.Lock()
	defer m.Unlock()
	m.KeepPlaced(on)
}

// Given tells f of the prefill that this router has sent to each endpoint that may
// be chosen, since it came, in ns.
func (r *Router) Given(f func(address string, work int64)) {
	t := r.Table()
	work := make([]int64, len(t.candidates))
	t.memory.Lock()
	for i := range t.candidates {
		work[i] = t.memory.Given(t.candidates[i].id)
	}
	t.memory.Unlock() // f may take its time
	for i := range t.candidates {
		f(t.candidates[i].address, work[i])
	}
}

// Placed tells f which levels have gone to which endpoint for the first time since
// the last call. They are valid until f returns.
func (r *Router) Placed(f func(address string, levels []uint64)) {
	t := r.Table()
	t.memory.Lock()
	defer t.memory.Unlock()
	t.memory.TakePlaced(func(id affinity.ID, levels []uint64) {
		if i := t.candidateOf(id); i >= 0 {
			f(t.candidates[i].address, levels)
		}
	})
}

// GiveElsewhere says that another router has sent prefill to an endpoint, in ns; now
// is on the clock of [Request].Now. An endpoint that may not be chosen is ignored.
func (r *Router) GiveElsewhere(address string, now, work int64) {
	r.at(address, func(m *memory, id affinity.ID) { m.GiveElsewhere(id, now, work) })
}

// PlaceElsewhere says that another router has sent an endpoint a request with these
// levels. An endpoint that may not be chosen is ignored.
func (r *Router) PlaceElsewhere(address string, levels []uint64) {
	r.at(address, func(m *memory, id affinity.ID) { m.Learn(id, levels[:min(len(levels), affinity.MaxPlaced)]) })
}

// at calls f for an endpoint that may be chosen, with the memory locked.
func (r *Router) at(address string, f func(*memory, affinity.ID)) {
	t := r.Table()
	i, is := t.find(address)
	if !is {
		return
	}
	t.memory.Lock()
	defer t.memory.Unlock()
	f(t.memory, t.candidates[i].id)
}

// unserved are those of the n levels looked at that a candidate has not served.
func (a *auto) unserved(i, n int) []uint64 {
	first := 0
	for level := 1; first < n && level <= int(a.s.matched[i]); level = affinity.NextLevel(level) {
		first++
	}
	return a.s.levels[first:n]
}
