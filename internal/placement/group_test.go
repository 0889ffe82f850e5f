package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// onInstances returns n instances of so many copies each.
func onInstances(n, copies int) []Node {
	list := nodes(n * copies)
	for i := range list {
		list[i].Instance = fmt.Sprintf("gpu-%d", i/copies)
	}
	return list
}

// The copies of an instance are next to each other in every order, the instance
// has the share of all its copies, and each of them its own share of that.
func TestInstancesStayTogether(t *testing.T) {
	list := append(onInstances(4, 3), nodes(14)[12:]...) // and two that are alone
	list[0].Weight = 3
	x := New(list)
	const keys = 100_000
	counts := make([]int, len(list))
	for k := range keys {
		order := make([]int, maxTop)
		order = order[:x.Top(key(k), order)]
		counts[order[0]]++
		seen := make(map[string]bool)
		last := ""
		for _, i := range order {
			name := list[i].Instance
			if name == "" {
				name = list[i].Address
			}
			if name != last && seen[name] {
				t.Fatalf("key %d: instance %s comes twice in %v", k, name, order)
			}
			seen[name], last = true, name
		}
	}
	total := 0.0
	for _, n := range list {
		total += float64(n.Weight)
	}
	for i, c := range counts {
		if got := float64(c) / (keys * float64(list[i].Weight) / total); got < 0.95 || got > 1.05 {
			t.Errorf("%s of weight %d has %.3f of its share", list[i].Address, list[i].Weight, got)
		}
	}
}

// Instances of one copy each change nothing for those without a name, and a fleet
// where some have instances keeps the order among the others.
func TestWithoutInstancesNothingChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := nodes(rapid.IntRange(1, 20).Draw(t, "nodes"))
		weight := rapid.Uint32Range(1, 3).Draw(t, "weight")
		for i := range list {
			list[i].Weight = weight
		}
		grouped := append(slices.Clone(list), Node{Address: "10.9.9.9:80", Weight: weight, Instance: "other"})
		k := rapid.Uint64().Draw(t, "key")
		plain, with := New(list), New(grouped)
		for i := range list {
			for j := range list {
				if plain.Before(k, i, j) != with.Before(k, i, j) {
					t.Fatalf("nodes %d and %d change places", i, j)
				}
			}
		}
	})
}

// A further copy takes keys of other copies of its instance and, as the instance's
// share grows, of others; none moves between those that were there.
func TestAddingACopyMovesOnlyToItsInstance(t *testing.T) {
	all := onInstances(4, 3)
	last := len(all) - 1
	before, after := New(all[:last]), New(all)
	moved := 0
	for i := range 50_000 {
		was, is := home(before, key(i)), home(after, key(i))
		if was == is {
			continue
		}
		moved++
		if all[is].Instance != all[last].Instance || is != last && all[was].Instance == all[is].Instance {
			t.Fatalf("key %d moved from %s to %s", i, all[was].Address, all[is].Address)
		}
	}
	if moved == 0 {
		t.Error("nothing moved to the new copy")
	}
}
