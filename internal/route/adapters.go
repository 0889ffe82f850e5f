package route

import (
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

// AdapterRules say how requests for LoRA adapters are routed: each adapter has a
// set of endpoints, always the same ones, so that few of them have to load it.
type AdapterRules struct {
	// Sticky is how many endpoints an adapter's set has, if as many can serve it; 0
	// takes no notice of adapters. It grows while they have no room.
	Sticky int
	// Models are those that are adapters even if no endpoint says that it has them;
	// one may end in *, for all that begin like it.
	Models []string
}

// has reports whether the rules name a model.
func (r AdapterRules) has(model string) bool {
	for _, m := range r.Models {
		start, many := strings.CutSuffix(m, "*")
		if m == model || many && strings.HasPrefix(model, start) {
			return true
		}
	}
	return false
}

const (
	// maxAdapters bounds the adapters whose sets are kept; a client may make up names.
	maxAdapters = 1024
	// growthTime is how long a set stays as large as it had to become, in ns.
	growthTime = 300e9
)

// adapters are what a table knows of adapters.
type adapters struct {
	rules AdapterRules
	set   fleet.Set
	named map[string]bool // by the endpoints, whatever their state
	sets  *lru.Cache[string, *adapterSet]
	grown *growth
}

// adapterSet is who serves an adapter, in order.
type adapterSet struct {
	name string
	able *Table // all who can

	mu     sync.Mutex
	order  []int32 // of the candidates of able, the first sorted ones in the adapter's order
	sorted int
	// first is the table of the first n, the last that was used.
	first *Table
	n     int
}

func newAdapters(t *Table, set fleet.Set, s surroundings) *adapters {
	if s.adapters.Sticky == 0 {
		return nil
	}
	a := &adapters{rules: s.adapters, set: set, named: make(map[string]bool), grown: s.grown}
	a.sets, _ = lru.New[string, *adapterSet](maxAdapters) // it fails for a size below 1 only
	for i := range set.Len() {
		for _, name := range set.At(i).Adapters.All() {
			a.named[name] = true
		}
	}
	return a
}

// LooksAtModels reports whether the model of a request matters.
func (t *Table) LooksAtModels() bool { return t.adapters != nil }

// adapterOf returns the adapter that a request is for, empty for none.
func (t *Table) adapterOf(r *Request) string {
	switch a := t.adapters; {
	case a == nil:
		return ""
	case r.Adapter != "":
		return r.Adapter
	case r.Model != "" && (a.named[r.Model] || a.rules.has(r.Model)):
		return r.Model
	}
	return ""
}

// pickAdapter chooses within an adapter's set. A set without room grows; who cannot
// serve the adapter is never chosen.
func (t *Table) pickAdapter(d *Decision, policy Policy, r *Request, name string) load.Reservation {
	set := t.adapterSet(name)
	all := len(set.order)
	n := t.adapters.rules.Sticky + t.adapters.grown.by(name, r.Now)
	if n < all {
		limits := set.able.bounds(policy.partThreshold())
		needed := n
		for needed < all && !set.room(needed, limits) {
			needed++
		}
		if needed > n {
			t.adapters.grown.to(name, needed-t.adapters.rules.Sticky, r.Now)
		}
		n = needed
	}
	if n < all {
		if slot, ok := set.table(n).pick(d, policy, r); ok {
			d.AdapterSet = n
			return slot
		} // its room was taken since
	}
	slot, _ := set.able.pick(d, policy, r)
	d.AdapterSet = all
	return slot
}

func (t *Table) adapterSet(name string) *adapterSet {
	if set, ok := t.adapters.sets.Get(name); ok {
		return set
	}
	set := &adapterSet{name: strings.Clone(name), able: t}
	if t.adapters.named[name] {
		set.able = t.owners(name)
	}
	set.order = make([]int32, len(set.able.candidates))
	for i := range set.order {
		set.order[i] = int32(i)
	}
	set.sort(t.adapters.rules.Sticky)
	t.adapters.sets.Add(set.name, set)
	return set
}

// owners returns a table of those that have an adapter: the most eligible of them,
// whoever else there is.
func (t *Table) owners(name string) *Table {
	var endpoints []fleet.Endpoint
	for _, e := range t.adapters.set.Endpoints() {
		if e.Adapters.Has(name) {
			endpoints = append(endpoints, e)
		}
	}
	set, _ := fleet.NewSet(endpoints)
	o := &Table{policy: t.policy, membership: t.membership, memory: t.memory, stray: t.stray, tracker: t.tracker}
	o.admit(set)
	o.prepare()
	t.memory.Lock()
	defer t.memory.Unlock()
	o.identify()
	return o
}

// adapterKey is what orders the endpoints for an adapter. Routers must agree on it.
func adapterKey(name string) uint64 { return xxhash.Sum64String("warmpath/adapter\x00" + name) }

// sort puts the first n of the order in their places. s.mu is held, or s is new.
func (s *adapterSet) sort(n int) {
	if n = min(n, len(s.order)); n > s.sorted {
		s.able.index.Select(adapterKey(s.name), s.order, n)
		s.sorted = n
	}
}

// room reports whether any of the first n has room. n is less than there are.
func (s *adapterSet) room(n int, limits bounds) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sort(n)
	for _, i := range s.order[:n] {
		if c := &s.able.candidates[i]; c.counter.Load() < limits.of(c) {
			return true
		}
	}
	return false
}

// table returns a table of the first n. n is less than there are.
func (s *adapterSet) table(n int) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil || s.n != n {
		s.sort(n)
		among := make(map[string]bool, n)
		for _, i := range s.order[:n] {
			among[s.able.candidates[i].address] = true
		}
		s.first, s.n = s.able.part(func(c *candidate) bool { return among[c.address] }), n
	}
	return s.first
}

// growth is by how much adapters' sets are larger than the rules say. It outlives
// the tables.
type growth struct {
	mu   sync.Mutex
	sets *lru.Cache[string, grownSet]
}

// grownSet is one set's: by how many endpoints, and since when it needed no more.
type grownSet struct {
	by int
	at int64
}

func newGrowth() *growth {
	sets, _ := lru.New[string, grownSet](maxAdapters)
	return &growth{sets: sets}
}

// by returns by how much a set is larger now. One that was large enough for a while
// becomes smaller, step by step.
func (g *growth) by(name string, now int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	set, ok := g.sets.Get(name)
	if !ok {
		return 0
	}
	if steps := (now - set.at) / growthTime; steps > 0 {
		if set.by -= int(steps); set.by <= 0 {
			g.sets.Remove(name)
			return 0
		}
		set.at = now
		g.sets.Add(name, set)
	}
	return set.by
}

// to says that a set needs to be larger by so many.
func (g *growth) to(name string, by int, now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sets.Add(strings.Clone(name), grownSet{by, now})
}
