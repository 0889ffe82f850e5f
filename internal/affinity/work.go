package affinity

// Given returns the work that an endpoint was given here, by [Memory.Give], since
// its number is its own, in ns.
func (m *Memory) Given(id ID) int64 {
	if int(id) >= len(m.given) {
		return 0 // all was forgotten since
	}
	return m.given[id]
}

// GiveElsewhere adds work to an endpoint that another router has given it, in ns.
func (m *Memory) GiveElsewhere(id ID, now, work int64) {
	if int(id) < len(m.busy) {
		m.busy[id] = max(m.busy[id], now) + work
	}
}
