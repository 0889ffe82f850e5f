package route

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

// weighted returns a table of endpoints with these weights, in their order, and
// what counts at each.
func weighted(policy Policy, weights ...uint32) (*Table, []*load.Counter) {
	list := endpoints(len(weights))
	for i := range list {
		list[i].Weight = weights[i]
	}
	tracker := load.NewTracker()
	t := NewTable(setOf(list...), policy, tracker)
	counters := make([]*load.Counter, len(list))
	for i, e := range list {
		counters[i] = tracker.Counter(e.Address)
	}
	return t, counters
}

func occupy(counters []*load.Counter, loads ...int) {
	for i, n := range loads {
		for range n {
			counters[i].Take()
		}
	}
}

// Of evenly spaced random numbers each candidate gets exactly its share, with and
// without one that is left out.
func TestDrawGivesExactShares(t *testing.T) {
	for _, c := range []struct {
		weights []uint32
		except  int
		draws   int // a power of two: the numbers are exact
		want    []int
	}{
		{[]uint32{4, 1, 1, 2}, -1, 8, []int{4, 1, 1, 2}},
		{[]uint32{4, 1, 1, 2}, 0, 4, []int{0, 1, 1, 2}},
		{[]uint32{1, 2, 4, 1}, 2, 4, []int{1, 2, 0, 1}},
		{[]uint32{1, 1, 2, 4}, 3, 4, []int{1, 1, 2, 0}},
		{[]uint32{3, 3, 3, 3}, -1, 8, []int{2, 2, 2, 2}},
		{[]uint32{3, 3, 3, 3, 3}, 0, 8, []int{0, 2, 2, 2, 2}},
		{[]uint32{3, 3, 3, 3, 3}, 2, 8, []int{2, 2, 0, 2, 2}},
		{[]uint32{3, 3, 3, 3, 3}, 4, 8, []int{2, 2, 2, 2, 0}},
	} {
		table, _ := weighted(Policy{}, c.weights...)
		got := make([]int, len(c.weights))
		for k := range c.draws {
			got[table.draw(uint64(k)*(1<<63/uint64(c.draws/2)), c.except)]++
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("weights %v without %d: %v, want %v", c.weights, c.except, got, c.want)
		}
	}
}

// The sequence is splitmix64's: these are its first numbers from 0 on.
func TestNextIsSplitmix64(t *testing.T) {
	for random, want := range map[uint64]uint64{
		0:                  0xe220a8397b1dcdaf,
		0x9e3779b97f4a7c15: 0x6e789e6aa1b965f4,
		0x3c6ef372fe94f82a: 0x06c45d188009454f,
	} {
		if got := next(random); got != want {
			t.Errorf("after %x comes %x, want %x", random, got, want)
		}
	}
}

// The least loaded comes first, then the runner-up, then another; of equal ones
// the random number decides, and the next of them follows.
func TestLeastOutstandingNamesTheRunnerUp(t *testing.T) {
	policy := Policy{Strategy: LeastOutstandingRequests}
	for _, c := range []struct {
		weights []uint32
		loads   []int
		random  uint64
		want    []int
	}{
		{[]uint32{1, 1, 1, 1}, []int{0, 3, 1, 2}, 9, []int{0, 2, 3}},
		{[]uint32{1, 1, 1, 1}, []int{3, 2, 1, 0}, 9, []int{3, 2, 0}},
		{[]uint32{1, 1, 1, 1}, []int{1, 0, 2, 3}, 9, []int{1, 0, 2}},
		{[]uint32{1, 1, 1, 1}, []int{5, 4, 0, 4}, 9, []int{2, 1, 3}},
		{[]uint32{1, 1}, []int{1, 0}, 9, []int{1, 0}},
		{[]uint32{1, 1}, []int{0, 0}, 4, []int{0, 1}},
		{[]uint32{1, 1}, []int{0, 0}, 5, []int{1, 0}},
		{[]uint32{1, 1, 1, 1}, []int{1, 0, 0, 5}, 0, []int{1, 2, 3}},
		{[]uint32{1, 1, 1, 1}, []int{1, 0, 0, 5}, 1, []int{2, 1, 3}},
		{[]uint32{1, 1, 1}, []int{0, 0, 0}, 2, []int{2, 0, 1}},
		// After one more request the loads for the weight are 2, 3/4 and 1.
		{[]uint32{1, 4, 2}, []int{1, 2, 1}, 9, []int{1, 2, 0}},
	} {
		table, counters := weighted(policy, c.weights...)
		occupy(counters, c.loads...)
		d, _ := table.Pick(Request{Random: c.random})
		var want []string
		for _, i := range c.want {
			want = append(want, table.candidates[i].address)
		}
		if !slices.Equal(d.Choices(), want) || d.Load != int64(c.loads[c.want[0]]) || d.Reason != ByLeastOutstanding {
			t.Errorf("weights %v, loads %v, random %d: %v with load %d (%s), want %v", c.weights, c.loads, c.random, d.Choices(), d.Load, d.Reason, want)
		}
	}
}

// Loads change between the two looks at them: where no candidate has the cost any
// more, the first that had it stays, and its neighbour follows.
func TestTiedWhileLoadsChange(t *testing.T) {
	table, counters := weighted(Policy{Strategy: LeastOutstandingRequests}, 1, 1, 1, 1)
	occupy(counters, 3, 0, 3, 3)
	for _, c := range []struct {
		cost           float64
		skip, first    int
		best, second   int
		seen, wantLoad int64
	}{
		{cost: 9, skip: 0, first: 3, best: 3, second: 0, seen: 7, wantLoad: 7},
		{cost: 9, skip: 2, first: 1, best: 1, second: 2, seen: 7, wantLoad: 7},
		{cost: 1, skip: 0, first: 1, best: 1, second: 2, seen: 7, wantLoad: 0}, // the only one
		{cost: 4, skip: 1, first: 0, best: 2, second: 3, seen: 3, wantLoad: 3},
	} {
		best, second, seen := table.tied(c.cost, c.skip, c.first, c.seen)
		if best != c.best || second != c.second || seen != c.wantLoad {
			t.Errorf("%+v: %d and %d, load %d", c, best, second, seen)
		}
	}
}

// With an automatic threshold the bound is that of the mean load, this request
// counted in, for the endpoint's weight.
func TestBoundFollowsLoadAndWeight(t *testing.T) {
	table, counters := weighted(prefixAware(AutoConcurrencyThreshold), 1, 4)
	occupy(counters, 1, 8) // with this one 10 requests for a weight of 5
	seen := make(map[int64]bool)
	for key := range uint64(40) {
		d, r := table.Pick(Request{Key: key, Keyed: true})
		want := autoBound(2)
		if d.Chosen == table.candidates[1].address {
			want = autoBound(8)
		}
		if d.Bound != want {
			t.Errorf("the bound of %s is %d, want %d", d.Chosen, d.Bound, want)
		}
		seen[d.Bound] = true
		r.Release()
	}
	if len(seen) != 2 {
		t.Errorf("bounds %v, want those of both endpoints", seen)
	}
}

// The bound of each kind grows with the weight; a fixed threshold does not.
func TestBoundOfEachKind(t *testing.T) {
	heavy := &candidate{weight: 4}
	for _, c := range []struct {
		b    bounds
		want int64
	}{
		{bounds{perWeight: 2}, autoBound(8)},
		{bounds{perWeight: 2, loose: true}, looseBound(8)},
		{bounds{perWeight: 2, threshold: 1}, 1},
		{bounds{perWeight: 2, threshold: 9, loose: true}, 9},
	} {
		if got := c.b.of(heavy); got != c.want {
			t.Errorf("%+v gives %d for a weight of 4, want %d", c.b, got, c.want)
		}
	}
	if autoBound(8) == autoBound(0.5) || looseBound(8) == looseBound(0.5) {
		t.Error("the bounds of a mean of 8 and of a half are one")
	}
}

// What a decision tells of loads, bounds and ranks while one prefix fills all.
func TestDecisionTellsTheLoads(t *testing.T) {
	const threshold = 2
	table, _ := weighted(prefixAware(threshold), 1, 1, 1, 1)
	order := table.Order(7)
	for i := range 10 {
		d, _ := table.Pick(Request{Key: 7, Keyed: true})
		rank := i / threshold
		want := fmt.Sprintf("%s rank %d, load %d, home's %d, bound 2", order[rank%4], rank%4, i%threshold, min(i, threshold))
		if i >= 4*threshold { // all full: the least loaded, the earlier home first
			want = fmt.Sprintf("%s rank %d, load 2, home's %d, bound 2", order[i-8], i-8, min(i, 2)+i-8)
		}
		if got := fmt.Sprintf("%s rank %d, load %d, home's %d, bound %d", d.Chosen, d.Rank, d.Load, d.HomeLoad, d.Bound); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
		if !slices.Equal(d.Homes(), order[:MaxChoices]) || d.Key != 7 || !d.Keyed {
			t.Errorf("request %d: homes %v of key %d, want %v", i, d.Homes(), d.Key, order)
		}
	}
}

// Where nobody is warm and all have as little to do, the random number decides
// between all of them.
func TestKVAwareBreaksTiesEvenly(t *testing.T) {
	for k := range uint64(4) {
		table, _ := weighted(Policy{Strategy: KVAware}, 1, 1, 1, 1)
		d, _ := table.Pick(Request{Key: 1, Keyed: true, Random: k << 62})
		if d.Reason != ByLeastOutstanding || d.Chosen != table.candidates[k].address {
			t.Errorf("the random number %#x: %s by %s", k<<62, d.Chosen, d.Reason)
		}
	}
}

// When all are full the one with the least load for its weight takes the request.
func TestSaturatedCountsTheWeight(t *testing.T) {
	table, counters := weighted(prefixAware(1), 1, 8, 2)
	occupy(counters, 1, 7, 3) // after one more 2, 1 and 2 for the weight
	d, _ := table.Pick(Request{Key: 3, Keyed: true})
	if d.Reason != Saturated || d.Chosen != table.candidates[1].address || d.Load != 7 || d.Bound != 1 {
		t.Errorf("%s chose %s with load %d, bound %d", d.Reason, d.Chosen, d.Load, d.Bound)
	}
}

// An ID of the memory that no candidate has is nobody's.
func TestCandidateOf(t *testing.T) {
	table, _ := weighted(Policy{}, 1, 1, 1)
	for i, c := range table.candidates {
		if got := table.candidateOf(c.id); got != i {
			t.Errorf("ID %d is candidate %d, want %d", c.id, got, i)
		}
	}
	for _, id := range []int{len(table.byID), len(table.byID) + 1} {
		if got := table.candidateOf(affinity.ID(id)); got != -1 {
			t.Errorf("ID %d is candidate %d, want none", id, got)
		}
	}
}

// Every name is told, also of values that there are not.
func TestNames(t *testing.T) {
	names := make(map[string]bool)
	for i, r := range Reasons() {
		if names[r.String()] = true; int(r) != i || r.String() == "" {
			t.Errorf("reason %d is %d, %q", i, r, r)
		}
	}
	if n := len(Reasons()); len(names) != n || Reason(n).String() != fmt.Sprintf("reason(%d)", n) {
		t.Errorf("%d names of %d reasons, the next is %q", len(names), n, Reason(n))
	}
	if n := len(Strategies()); Strategy(n).String() != fmt.Sprintf("Strategy(%d)", n) {
		t.Errorf("strategy %d is %q", n, Strategy(n))
	}
}

// How much of a prompt is read, and who needs it.
func TestReadLength(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		needs  bool
		want   int
	}{
		{Policy{Strategy: PrefixAware, PrefixLength: 2048}, true, 2048},
		{Policy{Strategy: PrefixAware, PrefixLength: AutoPrefixLength}, true, affinity.MaxLevels * 256},
		{Policy{Strategy: KVAware, PrefixLength: 2048}, true, affinity.MaxLevels * 256},
		{Policy{Strategy: Random, PrefixLength: 1024}, false, 1024},
		{Policy{Strategy: LeastOutstandingRequests, PrefixLength: 1024}, false, 1024},
	} {
		if c.policy.NeedsKey() != c.needs || c.policy.ReadLength() != c.want {
			t.Errorf("%+v: needs a key %v, reads %d, want %v and %d", c.policy, c.policy.NeedsKey(), c.policy.ReadLength(), c.needs, c.want)
		}
	}
}

// Only a number of routers that differs makes a new table; each change of anything
// keeps the rest.
func TestRouterKeepsTheRest(t *testing.T) {
	r := NewRouter(prefixAware(3))
	r.SetMembership(setOf(endpoints(3)...))
	table := r.Table()
	if r.SetRouters(1, false); r.Table() != table {
		t.Error("one router, as before: a new table")
	}
	if r.SetRouters(2, false); r.Table() == table || r.Table().stray != strayTogether || table.stray != strayAlone {
		t.Errorf("two routers: stray %v, before %v", r.Table().stray, table.stray)
	}
	r.SetPolicy(Policy{Strategy: Random})
	if got := r.Table(); got.stray != strayTogether || got.Candidates() != 3 || got.Policy().Strategy != Random {
		t.Errorf("another policy: %d candidates, stray %v", got.Candidates(), got.stray)
	}
	if !r.Membership().Equal(setOf(endpoints(3)...)) || r.Table().Membership() != r.Membership().Version() {
		t.Errorf("membership %v", r.Membership())
	}
	r.SetMembership(fleet.Set{})
	if r.Table().Candidates() != 0 {
		t.Errorf("%d candidates of an empty membership", r.Table().Candidates())
	}
}
