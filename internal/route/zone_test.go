package route

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

// zoned returns a router in zone a of a fleet with so many endpoints in each zone.
func zoned(t testing.TB, policy Policy, zones map[string]int) *Router {
	t.Helper()
	var endpoints []fleet.Endpoint
	for zone, n := range zones {
		for i := range n {
			endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:80", zone[0], i+1), Weight: 1, Zone: zone})
		}
	}
	set, _ := fleet.NewSet(endpoints)
	r := NewRouter(policy)
	r.SetZone("a")
	r.SetMembership(set)
	return r
}

func zoneOf(r *Router, address string) string {
	i, _ := r.Membership().Index(address)
	return r.Membership().At(i).Zone
}

var everyPolicy = []Policy{
	{Strategy: Random},
	{Strategy: LeastOutstandingRequests},
	{Strategy: PrefixAware, PrefixLength: 1024},
	{Strategy: PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 3},
	{Strategy: PrefixAware, PrefixLength: AutoPrefixLength},
	{Strategy: PrefixAware, PrefixLength: AutoPrefixLength, ConcurrencyThreshold: 3},
	{Strategy: KVAware},
}

// The own zone has the requests as long as it has room, then all zones have, and
// whatever the load the choices for retries are three different endpoints.
func TestOwnZoneFirst(t *testing.T) {
	for _, policy := range everyPolicy {
		r := zoned(t, policy, map[string]int{"a": 2, "b": 4})
		zones := make(map[string]int)
		var slots []load.Reservation
		for i := range 60 {
			d, slot := r.Table().Pick(requestOf(uint64(i), uint64(i)*0x9e3779b97f4a7c15))
			slots = append(slots, slot)
			zone := zoneOf(r, d.Chosen)
			zones[zone]++
			if i < 2 && zone != "a" {
				t.Errorf("%+v: request %d of an idle fleet went to zone %s", policy, i, zone)
			}
			if c := d.Choices(); len(c) != 3 || c[0] == c[1] || c[1] == c[2] || c[0] == c[2] || d.Candidates != 6 {
				t.Errorf("%+v: choices %v of %d", policy, c, d.Candidates)
			}
		}
		// Of 60 on six endpoints 20 would be each two's part.
		if zones["a"] < 20 || zones["b"] == 0 {
			t.Errorf("%+v: %v", policy, zones)
		}
		for i := range slots {
			slots[i].Release()
		}
		atRest(t, r)
	}
}

// requestOf is a request with a short prompt of its own.
func requestOf(key, random uint64) Request {
	return Request{Key: key * 0xd6e8feb86659fd93, Keyed: true, Chars: 100, Random: random}
}

func atRest(t testing.TB, r *Router) {
	t.Helper()
	for _, c := range r.Loads().Snapshot() {
		if c.Outstanding != 0 {
			t.Errorf("%s has %d outstanding", c.Address, c.Outstanding)
		}
	}
}

// Who leaves the zone had no room in it: every endpoint there is at its bound, or at
// the bound of the automatic threshold for strategies without one.
func TestLeavingTheZoneNeedsAReason(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom(everyPolicy).Draw(rt, "policy")
		r := zoned(t, policy, map[string]int{"a": rapid.IntRange(1, 3).Draw(rt, "near"), "b": rapid.IntRange(1, 5).Draw(rt, "far")})
		var slots []load.Reservation
		for i := range rapid.IntRange(1, 80).Draw(rt, "requests") {
			if len(slots) > 0 && rapid.IntRange(0, 3).Draw(rt, "ends") == 0 {
				k := rapid.IntRange(0, len(slots)-1).Draw(rt, "which")
				slots[k].Release()
				slots = slices.Delete(slots, k, k+1)
			}
			table := r.Table()
			threshold := policy.ConcurrencyThreshold
			if !policy.NeedsKey() {
				threshold = AutoConcurrencyThreshold
			}
			limits := table.bounds(threshold)
			room := false
			for k := range table.near.candidates {
				c := &table.near.candidates[k]
				room = room || c.counter.Load() < limits.of(c)
			}
			d, slot := table.Pick(requestOf(uint64(i%7), rapid.Uint64().Draw(rt, "random")))
			slots = append(slots, slot)
			if near := zoneOf(r, d.Chosen) == "a"; room && !near {
				rt.Fatalf("%s has room, the request went to %s by %s", "zone a", d.Chosen, d.Reason)
			}
		}
	})
}

// A zone without endpoints, or without others, changes nothing.
func TestZonesThatDoNotMatter(t *testing.T) {
	policy := Policy{Strategy: PrefixAware, PrefixLength: 1024}
	for _, zones := range []map[string]int{{"b": 4}, {"a": 4}, {"b": 2, "c": 3}} {
		if r := zoned(t, policy, zones); r.Table().near != nil {
			t.Errorf("%v: a part for the own zone", zones)
		}
	}
	r := zoned(t, policy, map[string]int{"a": 2, "b": 2})
	r.SetZone("")
	if r.Table().near != nil {
		t.Error("a part for a zone that was taken back")
	}
}

// A reserve has nothing to do while one of those before it can serve, whatever it is
// like otherwise.
func TestPriorities(t *testing.T) {
	type of struct {
		state    fleet.State
		priority uint8
	}
	for _, tc := range []struct {
		fleet []of
		used  []int
	}{
		{[]of{{fleet.Healthy, 0}, {fleet.Healthy, 1}}, []int{0}},
		{[]of{{fleet.Healthy, 1}, {fleet.Healthy, 3}, {fleet.Healthy, 1}}, []int{0, 2}},
		{[]of{{fleet.Unhealthy, 0}, {fleet.Healthy, 1}}, []int{1}},
		{[]of{{fleet.Draining, 0}, {fleet.Unhealthy, 2}, {fleet.Unhealthy, 1}}, []int{2}},
		{[]of{{fleet.Draining, 1}, {fleet.Draining, 0}}, []int{1}},
	} {
		var endpoints []fleet.Endpoint
		for i, e := range tc.fleet {
			endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i), Weight: 1, State: e.state, Priority: e.priority})
		}
		set, _ := fleet.NewSet(endpoints)
		for _, policy := range everyPolicy {
			r := NewRouter(policy)
			r.SetMembership(set)
			used := make(map[string]bool)
			for i := range 100 {
				d, _ := r.Table().Pick(requestOf(uint64(i), uint64(i)<<57|uint64(i)*77))
				used[d.Chosen] = true
				for _, c := range d.Choices() {
					used[c] = true
				}
			}
			for i, e := range endpoints {
				if want := slices.Contains(tc.used, i); used[e.Address] != want {
					t.Errorf("%+v, %+v: endpoint %d used: %t", tc.fleet, policy, i, used[e.Address])
				}
			}
		}
	}
}

// With several copies on a machine what is too much for the home goes to the other
// copy on it first, then to another machine.
func TestOverflowStaysOnTheInstance(t *testing.T) {
	var endpoints []fleet.Endpoint
	for i := range 6 {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:800%d", i/2, i%2), Weight: 1, Instance: fmt.Sprint("gpu-", i/2)})
	}
	set, _ := fleet.NewSet(endpoints)
	r := NewRouter(Policy{Strategy: PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 2})
	r.SetMembership(set)
	for key := range uint64(50) {
		var instances []string
		var slots []load.Reservation
		for range 12 {
			d, slot := r.Table().Pick(requestOf(key, 1))
			i, _ := set.Index(d.Chosen)
			instances, slots = append(instances, set.At(i).Instance), append(slots, slot)
		}
		if n := slices.Compact(slices.Clone(instances)); len(n) != 3 {
			t.Fatalf("key %d overflowed along %v", key, instances)
		}
		for i := range slots {
			slots[i].Release()
		}
	}
}
