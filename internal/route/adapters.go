package route

import (
	"strings"

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

// models are the rules by name.
func (r AdapterRules) models() *ModelRules[bool] {
	named := new(ModelRules[bool])
	for _, m := range r.Models {
		named.Add(m, true)
	}
	return named
}

// adapters are what a table knows of adapters.
type adapters struct {
	rules AdapterRules
	set   fleet.Set
	named map[string][]int32 // by the endpoints, whatever their state: who has it
	rule  *ModelRules[bool]
	// sets are those of real adapters, guessed those of names that a client may have
	// made up: however many it makes up, they take no real one's place.
	sets, guessed *lru.Cache[string, *adapterSet]
	grown         *growth
}

func newAdapters(t *Table, set fleet.Set, s surroundings) *adapters {
	if s.adapters.Sticky == 0 {
		return nil
	}
	a := &adapters{rules: s.adapters, set: set, named: make(map[string][]int32), rule: s.adapterModels, grown: s.grown}
	a.sets, _ = lru.New[string, *adapterSet](maxAdapters) // it fails for a size below 1 only
	a.guessed, _ = lru.New[string, *adapterSet](maxAdapters)
	for i := range set.Len() {
		for _, name := range set.At(i).Adapters.All() {
			a.named[name] = append(a.named[name], int32(i))
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
	case r.Model != "" && a.is(r.Model):
		return r.Model
	}
	return ""
}

// is reports whether a model is an adapter.
func (a *adapters) is(model string) bool {
	ruled, _ := a.rule.Find(model)
	return ruled || len(a.named[model]) > 0
}

// isReal reports whether an endpoint or a rule names the adapter itself. Other names
// are the client's alone.
func (a *adapters) isReal(name string) bool { return len(a.named[name]) > 0 || a.rule.Names(name) }

// pickAdapter chooses within an adapter's set. A set without room grows; who cannot
// serve the adapter is never chosen.
func (t *Table) pickAdapter(d *Decision, policy Policy, r *Request, name string) load.Reservation {
	set := t.adapterSet(name)
	all := len(set.able.candidates)
	n := t.sizeOf(set, policy, r.Now)
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

// sizeOf returns how many endpoints a set has now. One that is larger than the rules
// say stays so while the smaller one would have no room.
func (t *Table) sizeOf(set *adapterSet, policy Policy, now int64) int {
	all, sticky := len(set.able.candidates), t.adapters.rules.Sticky
	if sticky >= all {
		return all
	}
	n := min(sticky+t.adapters.grown.by(set.name, set.real, now), all)
	needed := set.needed(set.able.bounds(policy.partThreshold()))
	if needed >= n && needed > sticky {
		t.adapters.grown.to(set.name, set.real, needed-sticky, now)
	}
	return max(n, needed)
}

func (t *Table) adapterSet(name string) *adapterSet {
	sets := t.adapters.guessed
	isReal := t.adapters.isReal(name)
	if isReal {
		sets = t.adapters.sets
	}
	if set, ok := sets.Get(name); ok {
		return set
	}
	set := &adapterSet{name: strings.Clone(name), real: isReal, able: t}
	if has := t.adapters.named[name]; len(has) > 0 {
		set.able = t.owners(has)
	}
	set.sort(t.adapters.rules.Sticky)
	sets.Add(set.name, set)
	return set
}

// owners returns a table of those that have an adapter: the most eligible of them,
// whoever else there is.
func (t *Table) owners(has []int32) *Table {
	endpoints := make([]fleet.Endpoint, len(has))
	for i, at := range has {
		endpoints[i] = t.adapters.set.At(int(at))
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
