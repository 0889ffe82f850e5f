package affinity

import (
	"maps"
	"math"
	"slices"
)

// ID stands for an endpoint; 0 for none.
type ID uint16

// fewNumbers is how many numbers there are before one is used again: enough that
// whoever decides on a table of some time ago has none that is another's by now.
const fewNumbers = 1 << 12

// numbers are the endpoints' numbers.
type numbers struct {
	of map[string]ID
	// most is the highest number to give before numbers are used again.
	most int
	// unused may be given again; retired, and before them swept, may still stand in the
	// memory. All are in the order in which their endpoints have gone.
	unused, swept, retired []ID
	gone                   []bool // by number: retired, swept or unused
	next                   int    // set to sweep
}

func (n *numbers) resize(endpoints int) {
	n.most = min(max(fewNumbers, 4*endpoints), math.MaxUint16)
}

// clone returns the same numbers, for a memory that nothing was swept out of yet.
func (n *numbers) clone() numbers {
	return numbers{
		of: maps.Clone(n.of), most: n.most, unused: slices.Clone(n.unused),
		retired: slices.Concat(n.swept, n.retired), gone: slices.Clone(n.gone),
	}
}

// ID returns the number of an endpoint. An address keeps it as long as it is
// retained. Then another may get it, the longest unused one first, after the memory
// has forgotten what stood in it under that number.
func (m *Memory) ID(address string) ID {
	if id, ok := m.numbers.of[address]; ok {
		return id
	}
	id := m.number()
	m.numbers.of[address], m.numbers.gone[id] = id, false
	m.busy[id], m.given[id] = 0, 0
	return id
}

// number returns one that nobody has. A part of the memory is swept for each, so that
// there are unused ones in time: to sweep it all at once takes 150 ms when it is large.
func (m *Memory) number() ID {
	n := &m.numbers
	if share := n.most / 4; len(n.swept) > 0 || len(n.retired) >= share {
		m.sweep(len(m.sets)/share + 1)
	}
	if len(m.busy) > n.most {
		for len(n.unused) == 0 && len(n.swept)+len(n.retired) > 0 {
			m.sweep(len(m.sets))
		}
		if len(n.unused) > 0 {
			id := n.unused[0]
			n.unused = n.unused[1:]
			return id
		}
	}
	if len(m.busy) > math.MaxUint16 { // 65,535 endpoints at once: all is forgotten
		clear(m.sets)
		*n = numbers{of: make(map[string]ID), most: n.most, gone: n.gone[:1]}
		m.busy, m.given = m.busy[:1], m.given[:1]
	}
	m.busy, m.given, n.gone = append(m.busy, 0), append(m.given, 0), append(n.gone, false)
	return ID(len(m.busy) - 1)
}

// Retain forgets what the endpoints have that keep does not name: whoever was away
// may come back without its cache.
func (m *Memory) Retain(keep func(address string) bool) {
	n := &m.numbers
	before := len(n.retired)
	for address, id := range n.of {
		if !keep(address) {
			delete(n.of, address)
			n.retired, n.gone[id] = append(n.retired, id), true
		}
	}
	slices.Sort(n.retired[before:]) // and not in the order of a map
}

// sweep takes numbers that are nobody's any more out of so many sets. Those of one
// round may be given again at its end.
func (m *Memory) sweep(sets int) {
	n := &m.numbers
	if len(n.swept) == 0 {
		n.swept, n.retired, n.next = n.retired, nil, 0
	}
	for ; sets > 0 && n.next < len(m.sets); sets-- {
		for i := range m.sets[n.next] {
			m.sets[n.next][i].drop(n.gone)
		}
		n.next++
	}
	if n.next >= len(m.sets) {
		n.unused, n.swept = append(n.unused, n.swept...), nil
	}
}

// drop takes holders that are gone out of an entry. Those that stay close up.
func (e *Entry) drop(gone []bool) {
	kept := 0
	for _, id := range e.holders {
		if id == 0 {
			break
		}
		if !isGone(gone, id) {
			e.holders[kept] = id
			kept++
		}
	}
	clear(e.holders[kept:])
}

func isGone(gone []bool, id ID) bool { return int(id) < len(gone) && gone[id] }
