package route

import (
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
}

// candidate is an endpoint that may be chosen.
type candidate struct {
	address string
	weight  float64
	// perWeight is 1/weight.
	perWeight float64
	counter   *load.Counter
}

// NewTable makes the snapshot for a membership and a policy. Endpoints that may
// not be chosen are left out altogether, so that an unhealthy idle endpoint
// cannot distort the load picture of the others.
func NewTable(set fleet.Set, policy Policy, tracker *load.Tracker) *Table {
	t := &Table{policy: policy, membership: set.Version(), equalWeights: true}
	state := mostEligible(set)
	var nodes []placement.Node
	for i := range set.Len() {
		e := set.At(i)
		if e.State != state {
			continue
		}
		weight := float64(e.Weight)
		t.candidates = append(t.candidates, candidate{e.Address, weight, 1 / weight, tracker.Counter(e.Address)})
		t.totalWeight += weight
		t.equalWeights = t.equalWeights && weight == t.candidates[0].weight
		nodes = append(nodes, placement.Node{Address: e.Address, Weight: e.Weight})
	}
	t.index = placement.New(nodes)
	return t
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
