package route

import (
	"slices"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
)

func TestStrategyNames(t *testing.T) {
	for _, s := range []Strategy{Random, LeastOutstandingRequests, PrefixAware} {
		if got, err := ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("ParseStrategy(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseStrategy("prefix_aware"); err == nil {
		t.Error("a lower-case name was taken")
	}
}

// An endpoint leaves and comes back while a request runs on it: the request
// stays counted, its release is not booked twice, and nothing goes negative.
func TestCountsOutliveMembership(t *testing.T) {
	r := NewRouter(Policy{Strategy: LeastOutstandingRequests})
	all, one := setOf(endpoints(2)...), setOf(endpoints(2)[1:]...)
	r.SetMembership(all)
	a := all.At(0).Address
	load := func() int64 {
		c, ok := r.Loads().Lookup(a)
		if !ok {
			return -1
		}
		return c.Outstanding()
	}
	first, second := r.Loads().Counter(a), r.Loads().Counter(a)
	if first != second {
		t.Fatal("one address has two counters")
	}
	running, _ := first.Take()
	for _, step := range []struct {
		set  fleet.Set
		want int64
	}{{one, 1}, {all, 1}, {one, 1}, {one, 1}, {all, 1}} {
		r.SetMembership(step.set)
		if got := load(); got != step.want {
			t.Fatalf("load = %d, want %d", got, step.want)
		}
	}
	again, _ := r.Loads().Counter(a).Take()
	running.Release()
	if got := load(); got != 1 {
		t.Errorf("load = %d after the old request ended, want 1", got)
	}
	again.Release()
	if got := load(); got != 0 {
		t.Errorf("load = %d at the end, want 0", got)
	}
}

// A change of policy and a change of membership keep each other.
func TestRouterPublishesBoth(t *testing.T) {
	r := NewRouter(Policy{})
	if r.Table().Candidates() != 0 {
		t.Error("a new router has candidates")
	}
	set := setOf(endpoints(3)...)
	r.SetMembership(set)
	r.SetPolicy(prefixAware(3))
	if got := r.Table(); got.Policy() != prefixAware(3) || got.Candidates() != 3 || got.Membership() != set.Version() {
		t.Errorf("table %+v", got)
	}
	if !r.Membership().Equal(set) {
		t.Error("membership lost")
	}
}

// The retry list of an overflowed request goes on along the order.
func TestChoicesFollowTheOrder(t *testing.T) {
	homes := []string{"a", "b", "c"}
	for rank, want := range [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}} {
		d := Decision{Rank: rank}
		d.chooseInOrder(homes[rank], homes)
		if !slices.Equal(d.Choices(), want) {
			t.Errorf("rank %d: choices %v, want %v", rank, d.Choices(), want)
		}
	}
	d := Decision{Rank: 5}
	d.chooseInOrder("f", homes)
	if want := []string{"f", "a", "b"}; !slices.Equal(d.Choices(), want) {
		t.Errorf("rank 5: choices %v, want %v", d.Choices(), want)
	}
}
