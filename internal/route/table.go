package route

import (
	"slices"
	"strings"

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
}

// NewTable makes the snapshot for a membership and a policy. Endpoints that may
// not be chosen are left out altogether, so that an unhealthy idle endpoint
// cannot distort the load picture of the others.
func NewTable(set fleet.Set, policy Policy, tracker *load.Tracker) *Table {
	return newTable(set, policy, tracker, newMemory(), 1)
}

// newTable is NewTable with the memory of the tables before it, for one of
// several routers.
func newTable(set fleet.Set, policy Policy, tracker *load.Tracker, m *memory, routers int) *Table {
	t := &Table{policy: policy, membership: set.Version(), equalWeights: true, memory: m, stray: strayAlone}
	if routers > 1 {
		t.stray = strayTogether
	}
	state := mostEligible(set)
	var nodes []placement.Node
	for i := range set.Len() {
		e := set.At(i)
		if e.State != state {
			continue
		}
		weight := float64(e.Weight)
		t.candidates = append(t.candidates, candidate{
			address: e.Address, weight: weight, perWeight: 1 / weight, counter: tracker.Counter(e.Address),
		})
		t.totalWeight += weight
		t.equalWeights = t.equalWeights && weight == t.candidates[0].weight
		nodes = append(nodes, placement.Node{Address: e.Address, Weight: e.Weight})
	}
	t.index = placement.New(nodes)
	t.enroll()
	return t
}

// enroll makes the candidates known to the memory.
func (t *Table) enroll() {
	t.memory.Lock()
	defer t.memory.Unlock()
	t.memory.Resize(len(t.candidates))
	t.memory.Retain(func(address string) bool {
		_, is := slices.BinarySearchFunc(t.candidates, address, func(c candidate, address string) int { return strings.Compare(c.address, address) })
		return is
	})
	mean := t.totalWeight / float64(len(t.candidates))
	for i := range t.candidates {
		c := &t.candidates[i]
		c.id, c.perSpeed = t.memory.ID(c.address), mean*c.perWeight
		for len(t.byID) <= int(c.id) {
			t.byID = append(t.byID, -1)
		}
		t.byID[c.id] = int32(i)
	}
}

// mostEligible returns the best state that any endpoint has: unhealthy ones
// serve when none is healthy, draining ones when there is nothing else. A
// request sent to a doubtful endpoint may be served; one sent nowhere is lost.
func mostEligible(set fleet.Set) fleet.State {
	best := fleet.Draining
	for i := range set.Len() {
		best = min(best, set.At(i).State)
	}
	return best
}

// Policy returns the policy that the table was made with.
func (t *Table) Policy() Policy { return t.policy }

// Membership returns the version of the membership it was made with.
func (t *Table) Membership() uint64 { return t.membership }

// Candidates returns how many endpoints may be chosen.
func (t *Table) Candidates() int { return len(t.candidates) }
