package route

import (
	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/load"
)

// Preview returns what a request would be answered now, by the router's own policy: see
// [Router.PreviewBy].
func (r *Router) Preview(request Request) Decision {
	return r.PreviewBy(r.Table().Policy(), request)
}

// PreviewBy returns what a request would be answered now by a policy. It
// reserves nothing, remembers nothing, and makes nothing hotter: it decides on copies of
// the loads and of what is known of this request's beginning. It builds a table, so it
// is for people.
func (r *Router) PreviewBy(policy Policy, request Request) Decision {
	r.mu.Lock()
	set, around, m := r.set, r.around, r.memory
	r.mu.Unlock()
	tracker := load.NewTracker()
	for i := range set.Len() {
		address := set.At(i).Address
		if c, ok := r.tracker.Lookup(address); ok {
			like(tracker.Counter(address), c)
		}
	}
	around.grown = around.grown.copied()
	t := newTable(set, policy, tracker, m.excerpt(&request), around)
	d, _ := t.Pick(request)
	return d
}

// like makes a new counter one with the load of another: a slot that has brought what
// all of its have, and the rest.
func like(c, other *load.Counter) {
	n := other.Load()
	if prompt, cold := other.Brought(); prompt > 0 {
		slot, _ := c.Take()
		slot.Bring(prompt, cold)
		n--
	}
	c.SetOthers(n)
}

// excerpt is a memory for this request alone.
func (m *memory) excerpt(r *Request) *memory {
	levels := make([]uint64, 0, affinity.MaxLevels+1)
	levels = append(levels, r.Levels[:min(len(r.Levels), affinity.MaxLevels)]...)
	m.Lock()
	defer m.Unlock()
	return &memory{Memory: m.Excerpt(append(levels, r.Key))}
}

// copied returns the same with a state of its own.
func (g *growth) copied() *growth {
	g.mu.Lock()
	defer g.mu.Unlock()
	other := newGrowth()
	for _, isReal := range []bool{true, false} {
		for _, name := range g.of(isReal).Keys() {
			if set, ok := g.of(isReal).Peek(name); ok {
				other.of(isReal).Add(name, set)
			}
		}
	}
	return other
}
