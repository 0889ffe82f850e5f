package route

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
)

// inTwoZones are endpoints of equal weights, every other one in zone b.
func inTwoZones(n int) fleet.Set {
	var list []fleet.Endpoint
	for i := range n {
		list = append(list, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1, Zone: []string{"a", "b"}[i%2]})
	}
	set, _ := fleet.NewSet(list)
	return set
}

// A twin follows the members, the zone, the adapters and the number of routers, not the
// policy, and counts and remembers by itself; once parted it stays as it is.
func TestTwinFollows(t *testing.T) {
	auto := Policy{Strategy: PrefixAware, PrefixLength: AutoPrefixLength}
	r := NewRouter(Policy{})
	before := r.Twin(auto)
	r.SetMembership(inTwoZones(6))
	r.SetZone("b")
	r.SetAdapters(AdapterRules{Sticky: 1, Models: []string{"lora-*"}})
	r.SetRouters(3, true)
	after := r.Twin(auto)
	for name, twin := range map[string]*Router{"from before": before, "from after": after} {
		table := twin.Table()
		if table.Candidates() != 6 || table.near == nil || table.near.Candidates() != 3 || table.adapters == nil || table.stray != strayTogether {
			t.Errorf("%s: %d candidates, near %v, adapters %v, stray %v", name, table.Candidates(), table.near, table.adapters, table.stray)
		}
		if table.Policy() != auto || r.Table().Policy() != (Policy{}) {
			t.Errorf("%s: policy %+v", name, table.Policy())
		}
		if d, slot := table.Pick(Request{Key: 1, Keyed: true, Model: "lora-1"}); d.AdapterSet != 1 || !slot.Held() {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for _, c := range r.Loads().Snapshot() {
		if c.Outstanding != 0 {
			t.Errorf("what twins decide is counted at %s", c.Address)
		}
	}
	r.Part(before)
	r.SetMembership(inTwoZones(2))
	if before.Table().Candidates() != 6 || after.Table().Candidates() != 2 {
		t.Errorf("%d and %d candidates, want 6 and 2", before.Table().Candidates(), after.Table().Candidates())
	}
}

// What is booked at an endpoint is known of it, whatever the policy, and of no other.
func TestBook(t *testing.T) {
	r := NewRouter(Policy{})
	r.SetMembership(inTwoZones(3))
	table := r.Table()
	first := Request{Key: 9, Keyed: true, Levels: []uint64{1, 2, 3}, Chars: 800}
	longer := Request{Key: 8, Keyed: true, Levels: []uint64{1, 2, 3, 4, 5}, Chars: 1300}
	a, b := r.Membership().At(0).Address, r.Membership().At(1).Address
	for i, c := range []struct {
		address string
		request Request
		warm    int
		ok      bool
	}{
		{a, first, 0, true},
		{a, longer, 768, true},
		{b, longer, 0, true},
		{b, longer, 1280, true},
		{a, Request{Key: 7, Keyed: true, Chars: 30}, 0, true},
		{a, Request{Key: 7, Keyed: true, Chars: 30}, 30, true},
		{a, Request{}, 0, false},
		{"10.9.9.9:80", first, 0, false},
	} {
		if warm, ok := table.Book(c.address, &c.request); warm != c.warm || ok != c.ok {
			t.Errorf("%d: %d characters, %t, want %d, %t", i, warm, ok, c.warm, c.ok)
		}
	}
	slot := table.TakeAt(a)
	nobody := table.TakeAt("10.9.9.9:80")
	if busiest, mean := table.Balance(); !slot.Held() || nobody.Held() || busiest != 1 || mean < 0.33 || mean > 0.34 {
		t.Errorf("busiest %v, mean %v", busiest, mean)
	}
	slot.Release()
}
