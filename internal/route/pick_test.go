package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"pgregory.net/rapid"
)

func endpoints(n int) []fleet.Endpoint {
	list := make([]fleet.Endpoint, n)
	for i := range list {
		list[i] = fleet.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1), Weight: 1}
	}
	return list
}

func setOf(list ...fleet.Endpoint) fleet.Set {
	set, _ := fleet.NewSet(list)
	return set
}

func prefixAware(threshold int) Policy {
	return Policy{Strategy: PrefixAware, PrefixLength: 4096, ConcurrencyThreshold: threshold}
}

// A thousand goroutines with one prefix hold slots at random: no endpoint ever
// runs more than the threshold while together they have room for all.
func TestBoundHoldsUnderConcurrency(t *testing.T) {
	const goroutines, threshold, rounds = 1000, 100, 30
	tracker := load.NewTracker()
	table := NewTable(setOf(endpoints(10)...), prefixAware(threshold), tracker)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			for range rounds {
				d, reservation := table.Pick(Request{Key: uint64(g % 3), Keyed: true, Random: r.Uint64()})
				if d.Load >= threshold || d.Reason == Saturated {
					t.Errorf("%s with %d outstanding at %s, bound %d", d.Reason, d.Load, d.Chosen, threshold)
				}
				for range r.IntN(50) {
					reservation.Held()
				}
				reservation.Release()
			}
		})
	}
	wg.Wait()
	for _, c := range tracker.Snapshot() {
		if c.Outstanding != 0 {
			t.Errorf("%s: %d outstanding after all were released", c.Address, c.Outstanding)
		}
	}
}

// Held open, 1,000 concurrent requests fill ten endpoints to exactly the threshold.
func TestConcurrentRequestsFillExactly(t *testing.T) {
	for _, p := range []Policy{prefixAware(100), {Strategy: LeastOutstandingRequests}} {
		for range 40 {
			tracker := load.NewTracker()
			table := NewTable(setOf(endpoints(10)...), p, tracker)
			start := make(chan struct{})
			var wg sync.WaitGroup
			for g := range 1000 {
				wg.Go(func() {
					<-start
					table.Pick(Request{Key: uint64(g % 3), Keyed: true, Random: next(uint64(g))})
				})
			}
			close(start)
			wg.Wait()
			for _, c := range tracker.Snapshot() {
				if c.Outstanding != 100 {
					t.Fatalf("%s: %s has %d, want 100", p.Strategy, c.Address, c.Outstanding)
				}
			}
		}
	}
}

// Held open, requests of one prefix fill its homes one after the other, exactly
// to the threshold, in the same order in every run; then the least loaded.
func TestFillOrder(t *testing.T) {
	const threshold = 10
	var first []string
	for run := range 3 {
		table := NewTable(setOf(endpoints(7)...), prefixAware(threshold), load.NewTracker())
		var order []string
		counts := make(map[string]int)
		for i := range 70 {
			d, _ := table.Pick(Request{Key: 42, Keyed: true, Random: rand.Uint64()})
			if counts[d.Chosen] == 0 {
				order = append(order, d.Chosen)
			}
			counts[d.Chosen]++
			if want := i / threshold; d.Rank != want || d.Chosen != order[want] {
				t.Fatalf("request %d went to rank %d, want %d", i, d.Rank, want)
			}
			if want := (map[bool]Reason{true: Home, false: Overflow})[i < threshold]; d.Reason != want {
				t.Fatalf("request %d: reason %s, want %s", i, d.Reason, want)
			}
		}
		for i := range 7 {
			d, _ := table.Pick(Request{Key: 42, Keyed: true})
			if d.Reason != Saturated || d.Chosen != order[i] || d.Load != threshold {
				t.Fatalf("over the brim, request %d: %+v; want home %d", i, d, i)
			}
		}
		if run == 0 {
			first = order
		} else if !slices.Equal(order, first) {
			t.Fatalf("fill order %v, in the first run %v", order, first)
		}
	}
}

// An endpoint that cannot be chosen changes no decision: neither its load nor
// its presence counts.
func TestUnpickableEndpointsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "healthy")
		live := endpoints(n)
		sick := fleet.Endpoint{Address: "10.9.9.9:8000", Weight: 1, State: rapid.SampledFrom([]fleet.State{fleet.Unhealthy, fleet.Draining}).Draw(t, "state")}
		policy := prefixAware(rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "threshold"))
		policy.Strategy = Strategy(rapid.IntRange(0, 2).Draw(t, "strategy"))
		loads := rapid.SliceOfN(rapid.IntRange(0, 6), n, n).Draw(t, "loads")
		request := Request{Key: rapid.Uint64().Draw(t, "key"), Keyed: rapid.Bool().Draw(t, "keyed"), Random: rapid.Uint64().Draw(t, "random")}
		pick := func(set fleet.Set) Decision {
			tracker := load.NewTracker()
			for i, k := range loads {
				for range k {
					tracker.Counter(live[i].Address).Take()
				}
			}
			d, _ := NewTable(set, policy, tracker).Pick(request)
			d.Membership = 0
			return d
		}
		with, without := pick(setOf(append(slices.Clone(live), sick)...)), pick(setOf(live...))
		if with != without {
			t.Fatalf("with the %s endpoint %+v, without %+v", sick.State, with, without)
		}
	})
}

func TestWorseEndpointsServeWhenThereIsNoBetter(t *testing.T) {
	pickFrom := func(states ...fleet.State) map[string]bool {
		list := endpoints(len(states))
		for i, s := range states {
			list[i].State = s
		}
		table := NewTable(setOf(list...), Policy{}, load.NewTracker())
		chosen := make(map[string]bool)
		for i := range 200 {
			d, _ := table.Pick(Request{Random: next(uint64(i))})
			chosen[d.Chosen] = true
		}
		return chosen
	}
	for _, tc := range []struct {
		states []fleet.State
		want   int
	}{
		{[]fleet.State{fleet.Healthy, fleet.Healthy, fleet.Unhealthy, fleet.Draining}, 2},
		{[]fleet.State{fleet.Unhealthy, fleet.Unhealthy, fleet.Draining}, 2},
		{[]fleet.State{fleet.Draining, fleet.Draining}, 2},
	} {
		if got := pickFrom(tc.states...); len(got) != tc.want {
			t.Errorf("%v: chosen %v, want %d endpoints", tc.states, got, tc.want)
		}
	}
}

func TestEmptyAndSingle(t *testing.T) {
	for _, strategy := range []Strategy{Random, LeastOutstandingRequests, PrefixAware} {
		policy := Policy{Strategy: strategy, ConcurrencyThreshold: 1}
		d, r := NewTable(setOf(), policy, load.NewTracker()).Pick(Request{Key: 1, Keyed: true})
		if d.Reason != NoEndpoints || d.Chosen != "" || r.Held() || len(d.Choices()) != 0 {
			t.Errorf("%s, no endpoint: %+v", strategy, d)
		}
		table := NewTable(setOf(endpoints(1)...), policy, load.NewTracker())
		for range 3 { // past the bound: there is nowhere else to go
			d, r = table.Pick(Request{Key: 1, Keyed: true})
			if d.Reason != SingleCandidate || d.Keyed || !r.Held() || len(d.Choices()) != 1 {
				t.Errorf("%s, one endpoint: %+v", strategy, d)
			}
		}
	}
}

// Requests without a key spread by load, and equal loads are not broken in
// favour of one endpoint.
func TestLeastOutstanding(t *testing.T) {
	for _, policy := range []Policy{{Strategy: LeastOutstandingRequests}, prefixAware(5)} {
		table := NewTable(setOf(endpoints(4)...), policy, load.NewTracker())
		counts := make(map[string]int)
		for i := range 400 {
			d, _ := table.Pick(Request{Random: next(uint64(i))})
			counts[d.Chosen]++
			if len(d.Choices()) != MaxChoices || d.Choices()[1] == d.Chosen || d.Choices()[2] == d.Choices()[1] || d.Choices()[2] == d.Chosen {
				t.Fatalf("choices %v", d.Choices())
			}
		}
		for address, c := range counts {
			if c != 100 {
				t.Errorf("%s: %s got %d of 400", policy.Strategy, address, c)
			}
		}
		firsts := make(map[string]int)
		for i := range 4000 {
			d, r := NewTable(setOf(endpoints(4)...), policy, load.NewTracker()).Pick(Request{Random: next(uint64(i))})
			r.Release()
			firsts[d.Chosen]++
		}
		for address, c := range firsts {
			if c < 850 || c > 1150 {
				t.Errorf("%s: %s won %d of 4000 ties, want about 1000", policy.Strategy, address, c)
			}
		}
	}
}

func TestWeightsScaleTheShares(t *testing.T) {
	list := endpoints(3)
	list[2].Weight = 2
	for _, tc := range []struct {
		policy Policy
		slack  int
	}{
		{Policy{Strategy: Random}, 200},
		{Policy{Strategy: LeastOutstandingRequests}, 1},
		{prefixAware(AutoConcurrencyThreshold), 200},
	} {
		table := NewTable(setOf(list...), tc.policy, load.NewTracker())
		counts := make(map[string]int)
		for i := range 8000 {
			d, r := table.Pick(Request{Key: next(uint64(i)), Keyed: true, Random: next(uint64(i) << 20)})
			counts[d.Chosen]++
			if tc.policy.Strategy != LeastOutstandingRequests {
				r.Release()
			}
		}
		for _, e := range list {
			if got, want := counts[e.Address], 2000*int(e.Weight); got < want-tc.slack || got > want+tc.slack {
				t.Errorf("%s: weight %d got %d requests, want %d", tc.policy.Strategy, e.Weight, got, want)
			}
		}
	}
}

// The dumb twin of the bounded choice: sort all homes, walk them.
func TestPrefixAwareEqualsWalkingTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := endpoints(rapid.IntRange(2, 12).Draw(t, "endpoints"))
		for i := range list {
			list[i].Weight = rapid.SampledFrom([]uint32{1, 1, 1, 2, 5}).Draw(t, "weight")
		}
		tracker := load.NewTracker()
		policy := prefixAware(rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "threshold"))
		table := NewTable(setOf(list...), policy, tracker)
		held := 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			k := rapid.Uint64Range(0, 4).Draw(t, "key")
			wantAddress, wantReason := walk(table, k, held)
			d, r := table.Pick(Request{Key: k, Keyed: true})
			if d.Chosen != wantAddress || d.Reason != wantReason {
				t.Fatalf("picked %s (%s), walking the order gives %s (%s)", d.Chosen, d.Reason, wantAddress, wantReason)
			}
			if c := d.Choices(); len(c) != min(MaxChoices, len(list)) || c[0] != d.Chosen {
				t.Fatalf("choices %v", c)
			}
			if rapid.Bool().Draw(t, "release") {
				r.Release()
			} else {
				held++
			}
		}
	})
}

func walk(t *Table, key uint64, held int) (string, Reason) {
	var order []int
	for _, address := range t.Order(key) {
		order = append(order, slices.IndexFunc(t.candidates, func(c candidate) bool { return c.address == address }))
	}
	least := order[0]
	for rank, i := range order {
		c := t.candidates[i]
		bound := int64(t.policy.ConcurrencyThreshold)
		if bound == 0 {
			bound = autoBound(float64(held+1) * c.weight / t.totalWeight)
		}
		if c.counter.Outstanding() < bound {
			return c.address, map[bool]Reason{true: Home, false: Overflow}[rank == 0]
		}
		l := t.candidates[least]
		if float64(c.counter.Outstanding()+1)/c.weight < float64(l.counter.Outstanding()+1)/l.weight {
			least = i
		}
	}
	return t.candidates[least].address, Saturated
}

func TestAutoBound(t *testing.T) {
	for _, tc := range []struct {
		mean float64
		want int64
	}{{0.001, 2}, {0.2, 3}, {1, 5}, {10, 20}, {40, 50}, {100, 125}} {
		if got := autoBound(tc.mean); got != tc.want {
			t.Errorf("autoBound(%v) = %d, want %d", tc.mean, got, tc.want)
		}
	}
	// 200 endpoints, 40 running requests: the bound is not rounded to nothing.
	table := NewTable(setOf(endpoints(200)...), prefixAware(AutoConcurrencyThreshold), load.NewTracker())
	counts := make(map[string]int)
	for range 40 {
		d, _ := table.Pick(Request{Key: 5, Keyed: true})
		counts[d.Chosen]++
		if int64(counts[d.Chosen]) > d.Bound || d.Reason == Saturated {
			t.Fatalf("%d at %s, bound %d, %s", counts[d.Chosen], d.Chosen, d.Bound, d.Reason)
		}
	}
	if len(counts) > 20 {
		t.Errorf("one prefix was spread over %d endpoints", len(counts))
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	for _, policy := range []Policy{{}, {Strategy: LeastOutstandingRequests}, prefixAware(0), prefixAware(1)} {
		table := NewTable(setOf(endpoints(7)...), policy, load.NewTracker())
		hold, _ := table.Pick(Request{Key: 9, Keyed: true})
		_ = hold
		if n := testing.AllocsPerRun(100, func() {
			_, r := table.Pick(Request{Key: 9, Keyed: true, Random: 5})
			r.Release()
		}); n != 0 {
			t.Errorf("%+v: %v allocations a pick", policy, n)
		}
	}
}

// Compare releases with
//
//	go test -run - -bench Pick -count 10 ./internal/route | tee new.txt
//	benchstat old.txt new.txt
func BenchmarkPick(b *testing.B) {
	policies := map[string]Policy{
		"random": {}, "least_outstanding": {Strategy: LeastOutstandingRequests},
		"prefix_auto": prefixAware(0), "prefix_fixed": prefixAware(10),
	}
	for _, n := range []int{7, 128, 10_000} {
		for name, policy := range policies {
			table := NewTable(setOf(endpoints(n)...), policy, load.NewTracker())
			b.Run(fmt.Sprintf("endpoints=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				k := uint64(1)
				for b.Loop() {
					k = next(k)
					_, r := table.Pick(Request{Key: k, Keyed: true, Random: k})
					r.Release()
				}
			})
		}
	}
}
