package route

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

// adapted returns a router of n endpoints, of which those named have adapters.
func adapted(policy Policy, n int, rules AdapterRules, have map[int][]string) *Router {
	list := endpoints(n)
	for i, names := range have {
		list[i].Adapters = fleet.NewNames(names...)
	}
	r := NewRouter(policy)
	r.SetAdapters(rules)
	r.SetMembership(setOf(list...))
	return r
}

func forModel(model string, key uint64) Request {
	r := requestOf(key, key*0x9e3779b97f4a7c15)
	r.Model = model
	return r
}

// 50 adapters on 12 endpoints, three each: as long as all are within their bounds no
// adapter is on more than three, and all endpoints have work.
func TestFewEndpointsLoadAnAdapter(t *testing.T) {
	for _, policy := range everyPolicy {
		r := adapted(policy, 12, AdapterRules{Sticky: 3, Models: []string{"adapter-*"}}, nil)
		random := rand.New(rand.NewPCG(1, 2))
		loaded := make(map[string]map[string]bool)
		used := make(map[string]int)
		var slots []load.Reservation
		for i := range 20_000 {
			if len(slots) == 24 { // two at an endpoint on average
				k := random.IntN(len(slots))
				slots[k].Release()
				slots = slices.Delete(slots, k, k+1)
			}
			model := fmt.Sprint("adapter-", random.IntN(50))
			request := forModel(model, uint64(random.IntN(500)))
			request.Now, request.Random = int64(i)*1e6, random.Uint64()
			d, slot := r.Table().Pick(request)
			slots = append(slots, slot)
			used[d.Chosen]++
			if loaded[model] == nil {
				loaded[model] = make(map[string]bool)
			}
			loaded[model][d.Chosen] = true
			if policy.ConcurrencyThreshold == 0 && d.AdapterSet != 3 {
				t.Fatalf("%+v: set of %d endpoints", policy, d.AdapterSet)
			}
		}
		most := 0
		for _, on := range loaded {
			most = max(most, len(on))
		}
		if policy.ConcurrencyThreshold == 0 && most > 3 {
			t.Errorf("%+v: an adapter is on %d endpoints", policy, most)
		}
		if len(used) != 12 {
			t.Errorf("%+v: %d endpoints have work", policy, len(used))
		}
	}
}

// Within its set an adapter's requests are routed as those of a model that has just
// these endpoints.
func TestWithinTheSetAsASingleModel(t *testing.T) {
	for _, policy := range everyPolicy {
		if policy.ConcurrencyThreshold == 0 && policy.Strategy != Random {
			policy.ConcurrencyThreshold = 5 // the automatic bound is that of the fleet
		}
		r := adapted(policy, 12, AdapterRules{Sticky: 3, Models: []string{"*"}}, nil)
		var among []fleet.Endpoint
		for _, i := range r.Table().adapterSet("a").order[:3] {
			among = append(among, fleet.Endpoint{Address: r.Table().candidates[i].address, Weight: 1})
		}
		single := NewRouter(policy)
		single.SetMembership(setOf(among...))
		var slots [2][]load.Reservation
		for i := range uint64(300) {
			request := forModel("a", i%17)
			request.Random, request.Now = i*0x9e3779b97f4a7c15, int64(i)*1e7
			d, slot := r.Table().Pick(request)
			request.Model = ""
			twin, twinSlot := single.Table().Pick(request)
			if d.Chosen != twin.Chosen || d.Reason != twin.Reason || !slices.Equal(d.Choices(), twin.Choices()) {
				t.Fatalf("%+v, request %d: %s by %s %v, a fleet of these has %s by %s %v", policy, i, d.Chosen, d.Reason, d.Choices(), twin.Chosen, twin.Reason, twin.Choices())
			}
			slots[0], slots[1] = append(slots[0], slot), append(slots[1], twinSlot)
			if len(slots[0]) > 6 {
				slots[0][0].Release()
				slots[1][0].Release()
				slots[0], slots[1] = slots[0][1:], slots[1][1:]
			}
		}
	}
}

// Who lacks an adapter that others have never gets its requests, under whatever load
// and not as a further choice either.
func TestOnlyThoseWhoHaveIt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom(everyPolicy).Draw(rt, "policy")
		have := make(map[int][]string)
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 1, 8, rapid.ID).Draw(rt, "have it") {
			have[i] = []string{"other", "sql"}
		}
		r := adapted(policy, 8, AdapterRules{Sticky: rapid.IntRange(1, 4).Draw(rt, "sticky")}, have)
		for i := range uint64(rapid.IntRange(1, 100).Draw(rt, "requests")) {
			request := forModel("sql", i%5)
			if rapid.Bool().Draw(rt, "in a field of its own") {
				request.Model, request.Adapter = "base", "sql"
			}
			d, _ := r.Table().Pick(request)
			for _, address := range d.Choices() {
				k, _ := r.Membership().Index(address)
				if !r.Membership().At(k).Adapters.Has("sql") {
					rt.Fatalf("%s was named, which does not have it", address)
				}
			}
			if d.Chosen == "" || d.AdapterSet > len(have) {
				rt.Fatalf("chosen %q of a set of %d", d.Chosen, d.AdapterSet)
			}
		}
	})
}

// The table of an adapter's first n has n, whatever was asked for before.
func TestTheFirstOfASet(t *testing.T) {
	set := adapted(everyPolicy[0], 8, AdapterRules{Sticky: 3, Models: []string{"*"}}, nil).Table().adapterSet("a")
	for _, n := range []int{3, 5, 5, 2, 7, 1} {
		if got := len(set.table(n).candidates); got != n {
			t.Errorf("%d candidates, want %d", got, n)
		}
	}
}

// A set that is full grows by as many as it needs, and shrinks when it has not
// needed them for five minutes each.
func TestSetGrowsWhenHot(t *testing.T) {
	r := adapted(prefixAware(2), 8, AdapterRules{Sticky: 2, Models: []string{"hot"}}, nil)
	var slots []load.Reservation
	at := func(now int64) Decision {
		request := forModel("hot", uint64(len(slots)))
		request.Now = now
		d, slot := r.Table().Pick(request)
		slots = append(slots, slot)
		return d
	}
	rest := func() {
		for i := range slots {
			slots[i].Release()
		}
		slots = nil
	}
	for i, want := range []int{2, 2, 2, 2, 3, 3, 4, 4, 5} {
		if d := at(1); d.AdapterSet != want {
			t.Errorf("request %d: a set of %d, want %d", i, d.AdapterSet, want)
		}
	}
	rest()
	r.SetMembership(r.Membership()) // it outlives the table
	for _, tc := range []struct {
		after int64 // seconds
		want  int
	}{{1, 5}, {299, 5}, {302, 4}, {500, 4}, {603, 3}, {2000, 2}} {
		if d := at(tc.after * 1e9); d.AdapterSet != tc.want {
			t.Errorf("after %d s: a set of %d, want %d", tc.after, d.AdapterSet, tc.want)
		}
		rest()
	}
}

// The order of the endpoints for an adapter is pinned: routers must agree on it. A
// further endpoint takes a place in some sets and moves nothing else.
func TestAdapterSetsAreStable(t *testing.T) {
	rules := AdapterRules{Sticky: 3, Models: []string{"*"}}
	before, after := adapted(prefixAware(0), 8, rules, nil), adapted(prefixAware(0), 9, rules, nil)
	newcomer := endpoints(9)[8].Address
	first := func(r *Router, name string) (set []string) {
		table := r.Table()
		for _, i := range table.adapterSet(name).order[:3] {
			set = append(set, table.candidates[i].address)
		}
		return set
	}
	for i := range 200 {
		name := fmt.Sprint("a", i)
		was, is := first(before, name), first(after, name)
		kept := slices.DeleteFunc(slices.Clone(is), func(a string) bool { return a == newcomer })
		if !slices.Equal(kept, was[:len(kept)]) {
			t.Fatalf("%s: %v became %v", name, was, is)
		}
	}
	if got, want := fmt.Sprintf("%016x", adapterKey("sql")), "ab0b9a5fd494131a"; got != want {
		t.Errorf("the key of an adapter is %s, was %s", got, want)
	}
}

// Without rules the model plays no part; with them it plays none for base models.
func TestModelsThatAreNoAdapters(t *testing.T) {
	for _, rules := range []AdapterRules{{}, {Sticky: 1, Models: []string{"sql-*", "x"}}} {
		r := adapted(Policy{Strategy: Random}, 6, rules, map[int][]string{0: {"known"}})
		used := make(map[string]bool)
		for i := range uint64(200) {
			d, _ := r.Table().Pick(forModel("base", i))
			used[d.Chosen] = true
		}
		if len(used) != 6 {
			t.Errorf("%+v: base went to %d endpoints", rules, len(used))
		}
		want := 1
		if rules.Sticky == 0 {
			want = 0
		}
		for _, name := range []string{"known", "sql-1", "x"} {
			if d, _ := r.Table().Pick(forModel(name, 1)); d.AdapterSet < want || rules.Sticky == 0 && d.AdapterSet > 0 {
				t.Errorf("%+v: %s has a set of %d", rules, name, d.AdapterSet)
			}
		}
	}
}

// Made-up names take bounded memory.
func TestAdaptersAreBounded(t *testing.T) {
	r := adapted(prefixAware(1), 4, AdapterRules{Sticky: 1, Models: []string{"*"}}, nil)
	for i := range 10 * maxAdapters {
		d, _ := r.Table().Pick(forModel(fmt.Sprint("made-up-", i), 1))
		_ = d
	}
	table := r.Table()
	if n := table.adapters.sets.Len() + table.adapters.guessed.Len(); n > maxAdapters {
		t.Errorf("%d sets are kept", n)
	}
	if n := table.adapters.grown.sets.Len() + table.adapters.grown.guessed.Len(); n > maxAdapters {
		t.Errorf("the growth of %d is kept", n)
	}
}

// Made-up names take the place of no real one: not of its set, and not of how large
// that has grown.
func TestMadeUpNamesEvictNothingReal(t *testing.T) {
	r := adapted(prefixAware(1), 6, AdapterRules{Sticky: 1, Models: []string{"ruled", "made-up-*"}}, map[int][]string{0: {"had"}, 1: {"had"}, 2: {"had"}})
	table := r.Table()
	sets := make(map[string]*adapterSet)
	for _, name := range []string{"had", "ruled"} {
		for range 2 { // the second finds no room in the set
			_, _ = table.Pick(forModel(name, 1))
		}
		sets[name] = table.adapterSet(name)
	}
	for i := range 3 * maxAdapters {
		_, slot := table.Pick(forModel(fmt.Sprint("made-up-", i), 1))
		slot.Release()
		request := forModel("base", 1)
		request.Adapter = fmt.Sprint("another-", i)
		_, slot = table.Pick(request)
		slot.Release()
		table.adapters.grown.to(request.Adapter, false, 1, 0)
	}
	for name, set := range sets {
		if table.adapterSet(name) != set {
			t.Errorf("the set of %s was forgotten", name)
		}
		if table.adapters.grown.by(name, true, 0) != 1 {
			t.Errorf("that the set of %s has grown was forgotten", name)
		}
	}
}

// A set that is full all the time stays as it is.
func TestSetStaysWhileFull(t *testing.T) {
	for _, want := range []int{4, 8} { // some of them, and all there are
		r := adapted(prefixAware(1), 8, AdapterRules{Sticky: 2, Models: []string{"hot"}}, nil)
		var slots []load.Reservation
		for i := range want {
			request := forModel("hot", uint64(i))
			_, slot := r.Table().Pick(request)
			slots = append(slots, slot)
		}
		for seconds := range int64(3000) {
			slots[0].Release() // one ends, and another comes
			request := forModel("hot", uint64(seconds))
			request.Now = seconds * 1e9
			d, slot := r.Table().Pick(request)
			slots = append(slots[1:], slot)
			if d.AdapterSet != want {
				t.Fatalf("after %d s: a set of %d, want %d", seconds, d.AdapterSet, want)
			}
		}
	}
}

// What the first request for an adapter costs that nobody has asked for before.
func BenchmarkNewAdapter(b *testing.B) {
	r := adapted(prefixAware(0), 1000, AdapterRules{Sticky: 3, Models: []string{"*"}}, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, slot := r.Table().Pick(forModel(fmt.Sprint("adapter-", i), 1))
		slot.Release()
	}
}

// The threshold holds in a set of one, too.
func TestThresholdInASetOfOne(t *testing.T) {
	r := adapted(prefixAware(2), 4, AdapterRules{Sticky: 1, Models: []string{"a"}}, nil)
	at := make(map[string]int)
	for range 8 {
		d, _ := r.Table().Pick(forModel("a", 1))
		at[d.Chosen]++
	}
	for address, n := range at {
		if n > 2 {
			t.Errorf("%s has %d, above the threshold", address, n)
		}
	}
}

// Who has an adapter gets its requests whatever its state and priority: others cannot
// serve it.
func TestOwnersInAnyState(t *testing.T) {
	for _, e := range []fleet.Endpoint{
		{State: fleet.Unhealthy}, {State: fleet.Draining}, {Priority: 1},
	} {
		list := endpoints(4)
		list[3].State, list[3].Priority, list[3].Adapters = e.State, e.Priority, fleet.NewNames("sql")
		r := NewRouter(prefixAware(2))
		r.SetAdapters(AdapterRules{Sticky: 2})
		r.SetMembership(setOf(list...))
		for i := range uint64(10) {
			if d, _ := r.Table().Pick(forModel("sql", i)); d.Chosen != list[3].Address || len(d.Choices()) != 1 {
				t.Errorf("%+v: chosen %s of %v", e, d.Chosen, d.Choices())
			}
		}
		if d, _ := r.Table().Pick(forModel("base", 1)); d.Chosen == list[3].Address {
			t.Errorf("%+v: the base model went there", e)
		}
	}
}

// Made-up names in a fleet without room cost little memory.
func TestMadeUpAdaptersInAFullFleet(t *testing.T) {
	r := adapted(prefixAware(1), 300, AdapterRules{Sticky: 2, Models: []string{"*"}}, nil)
	for i := range 300 {
		_, _ = r.Table().Pick(forModel("", uint64(i)))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range maxAdapters {
		_, _ = r.Table().Pick(forModel(fmt.Sprint("made-up-", i), 1))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d bytes for %d names", grown, maxAdapters)
	}
	runtime.KeepAlive(r)
}
