package route

import (
	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/placement"
)

// Table is what one request decides on: an immutable snapshot of the
// membership and the policy. The counters it points to live longer than it.
type Table struct {
	policy     Policy
	membership uint64
	candidates []candidate
	index      placement.Index
	// totalWeight is the sum of the candidates' weights, equalWeights says that
	// they are all the same.
	totalWeight  float64
	equalWeights bool

	memory *memory
	byID   []int32 // candidates by their ID, -1 for none
	stray  float64 // see strayAlone

	// near are the candidates in the router's own zone, nil if that makes no
	// difference. whole is the table that this one is a part of, nil if it is none.
	near, whole *Table
	adapters    *adapters // nil if they do not matter
	tracker     *load.Tracker
}

// candidateOf returns the candidate of an ID, or -1.
func (t *Table) candidateOf(id affinity.ID) int {
	if int(id) >= len(t.byID) {
		return -1
	}
	return int(t.byID[id])
}

// candidate is an endpoint that may be chosen.
type candidate struct {
	address string
	weight  float64
	// perWeight is 1/weight.
	perWeight float64
	counter   *load.Counter
	id        affinity.ID
	// perSpeed is the mean weight over its own: endpoints of a greater weight
	// prefill faster.
	perSpeed float64
	node     placement.Node
	zone     string
}

// NewTable makes the snapshot for a membership and a policy. Endpoints that may
// not be chosen are left out altogether, so that an unhealthy idle endpoint
// cannot distort the load picture of the others.
func NewTable(set fleet.Set, policy Policy, tracker *load.Tracker) *Table {
	return newTable(set, policy, tracker, newMemory(), surroundings{routers: 1, grown: newGrowth()})
}

// surroundings are where a router stands.
type surroundings struct {
	// routers is how many send requests to the members, sharing whether they tell
	// each other.
	routers int
	sharing bool
	// zone is the router's own; empty when it does not matter.
	zone string
	// adapters are the rules for them, adapterModels those of their names, and grown
	// the sets that are larger.
	adapters      AdapterRules
	adapterModels *ModelRules[bool]
	grown         *growth
}

// newTable is NewTable with the memory of the tables before it.
func newTable(set fleet.Set, policy Policy, tracker *load.Tracker, m *memory, s surroundings) *Table {
	t := &Table{policy: policy, membership: set.Version(), memory: m, stray: strayAlone}
	switch {
	case s.routers > 1 && s.sharing:
		t.stray = straySharing
	case s.routers > 1:
		t.stray = strayTogether
	}
	t.tracker = tracker
	t.admit(set)
	t.prepare()
	t.enroll()
	if s.zone != "" {
		t.near = t.part(func(c *candidate) bool { return c.zone == s.zone })
	}
	t.adapters = newAdapters(t, set, s)
	return t
}

// admit makes the most eligible endpoints candidates.
func (t *Table) admit(set fleet.Set) {
	state, priority := mostEligible(set)
	for i := range set.Len() {
		e := set.At(i)
		if e.State != state || e.Priority != priority {
			continue
		}
		weight := float64(e.Weight)
		t.candidates = append(t.candidates, candidate{
			address: e.Address, weight: weight, perWeight: 1 / weight, counter: t.tracker.Counter(e.Address),
			node: placement.Node{Address: e.Address, Weight: e.Weight, Instance: e.Instance}, zone: e.Zone,
		})
	}
}

// prepare computes what depends on which candidates there are.
func (t *Table) prepare() {
	nodes := make([]placement.Node, len(t.candidates))
	t.equalWeights = true
	for i := range t.candidates {
		c := &t.candidates[i]
		nodes[i] = c.node
		t.totalWeight += c.weight
		t.equalWeights = t.equalWeights && c.weight == t.candidates[0].weight
	}
	t.index = placement.New(nodes)
}

// part returns a table of some of the candidates, nil if these are all or none. Its
// bounds are those of the whole.
func (t *Table) part(has func(*candidate) bool) *Table {
	var at []int32
	for i := range t.candidates {
		if has(&t.candidates[i]) {
			at = append(at, int32(i))
		}
	}
	return t.partOf(at)
}

// partOf is part for the candidates at those positions, which are sorted.
func (t *Table) partOf(at []int32) *Table {
	if len(at) == 0 || len(at) == len(t.candidates) {
		return nil
	}
	p := &Table{policy: t.policy, membership: t.membership, memory: t.memory, stray: t.stray, whole: t}
	p.candidates = make([]candidate, len(at))
	for i, k := range at {
		p.candidates[i] = t.candidates[k]
	}
	p.prepare()
	p.number()
	return p
}

// enroll makes the candidates known to the memory.
func (t *Table) enroll() {
	candidates := make(map[string]bool, len(t.candidates))
	for i := range t.candidates {
		candidates[t.candidates[i].address] = true
	}
	t.memory.Lock() // which every decision waits for
	defer t.memory.Unlock()
	t.memory.Resize(len(t.candidates))
	t.memory.Retain(func(address string) bool { return candidates[address] })
	t.identify()
}

// identify gives the candidates their IDs. The memory is locked.
func (t *Table) identify() {
	mean := t.totalWeight / float64(len(t.candidates))
	for i := range t.candidates {
		c := &t.candidates[i]
		c.id, c.perSpeed = t.memory.ID(c.address), mean*c.perWeight
	}
	t.number()
}

// number makes the candidates known by their IDs.
func (t *Table) number() {
	for i := range t.candidates {
		id := int(t.candidates[i].id)
		for len(t.byID) <= id {
			t.byID = append(t.byID, -1)
		}
		t.byID[id] = int32(i)
	}
}

// mostEligible returns the best state that any endpoint has, and of those that have
// it the first priority: unhealthy ones serve when none is healthy, draining ones
// when there is nothing else. A request sent to a doubtful endpoint may be served;
// one sent nowhere is lost.
func mostEligible(set fleet.Set) (state fleet.State, priority uint8) {
	state, priority = fleet.Draining, fleet.MaxPriority
	for i := range set.Len() {
		switch e := set.At(i); {
		case e.State < state:
			state, priority = e.State, e.Priority
		case e.State == state:
			priority = min(priority, e.Priority)
		}
	}
	return state, priority
}

// Policy returns the policy that the table was made with.
func (t *Table) Policy() Policy { return t.policy }

// Membership returns the version of the membership it was made with.
func (t *Table) Membership() uint64 { return t.membership }

// Candidates returns how many endpoints may be chosen.
func (t *Table) Candidates() int { return len(t.candidates) }
