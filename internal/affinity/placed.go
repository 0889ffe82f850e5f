package affinity

// What of a request an endpoint serves for the first time is kept until other
// routers are told, so that they find again what this one has placed.

// MaxPlaced is how many levels are kept for others at most. What does not fit they
// do not hear of.
const MaxPlaced = 1024

// placed are requests' new levels, one request after the other.
type placed struct {
	keep   bool
	ids    []ID
	counts []int
	levels []uint64
}

// KeepPlaced begins or ends keeping what [Memory.TakePlaced] returns.
func (m *Memory) KeepPlaced(keep bool) { m.placed = placed{keep: keep} }

// Place notes that an endpoint serves levels that it has not served before, as far
// as is known.
func (m *Memory) Place(id ID, levels []uint64) {
	p := &m.placed
	if !p.keep || len(levels) == 0 || len(p.levels)+len(levels) > MaxPlaced {
		return
	}
	p.ids, p.counts, p.levels = append(p.ids, id), append(p.counts, len(levels)), append(p.levels, levels...)
}

// TakePlaced calls f for what was placed since the last call. The levels are valid
// until f returns.
func (m *Memory) TakePlaced(f func(id ID, levels []uint64)) {
	p := &m.placed
	rest := p.levels
	for i, id := range p.ids {
		f(id, rest[:p.counts[i]])
		rest = rest[p.counts[i]:]
	}
	p.ids, p.counts, p.levels = p.ids[:0], p.counts[:0], p.levels[:0]
}

// heardOf is the heat of a level that no request here had: next to none, but it is
// known.
const heardOf = 1e-6

// Learn says that an endpoint serves levels of a request to another router. They are
// no requests of this one's and make nothing hot.
func (m *Memory) Learn(id ID, levels []uint64) {
	if len(m.sets)*ways < m.want {
		m.grow()
	}
	for _, key := range levels {
		if e := m.place(key); e.key != key || e.heat == 0 {
			*e = Entry{key: key, heat: heardOf, at: m.clock}
		}
		m.Remember(key, id)
	}
}
