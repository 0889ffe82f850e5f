package affinity

import "slices"

// excerptEntries is the size of an excerpt: many times the levels of a request, so that
// none of them is in the way of another.
const excerptEntries = 1 << 13

// Excerpt returns a memory of its own that knows of these levels what this one knows,
// and of others nothing. It keeps its size. It is for asking what would be, without
// consequences.
func (m *Memory) Excerpt(levels []uint64) *Memory {
	x := &Memory{
		sets: make([][ways]Entry, excerptEntries/ways), want: excerptEntries, excerpt: true,
		clock: m.clock, count: m.count, window: m.window, soon: m.soon,
		numbers: m.numbers.clone(), busy: slices.Clone(m.busy), given: slices.Clone(m.given),
	}
	for _, key := range levels {
		if e, _ := m.look(key); e != nil {
			*x.place(key) = *e
		}
	}
	return x
}
