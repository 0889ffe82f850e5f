package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Select gives what sorting all of them would.
func TestSelect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		equal := rapid.Bool().Draw(t, "equal weights")
		for i := range rapid.IntRange(1, 40).Draw(t, "nodes") {
			weight := 1
			if !equal {
				weight = rapid.IntRange(1, 5).Draw(t, "weight")
			}
			nodes = append(nodes, Node{Address: string(rune('a' + i)), Weight: uint32(weight)})
		}
		x := New(nodes)
		var among []int32
		for i := range nodes {
			if rapid.IntRange(0, 3).Draw(t, "among") > 0 {
				among = append(among, int32(i))
			}
		}
		key, n := rapid.Uint64().Draw(t, "key"), rapid.IntRange(0, len(among)).Draw(t, "n")
		want := slices.Clone(among)
		slices.SortFunc(want, func(i, j int32) int { return x.Rank(key, int(i)) - x.Rank(key, int(j)) })
		got := slices.Clone(among)
		x.Select(key, got, n)
		if !slices.Equal(got[:n], want[:n]) {
			t.Fatalf("%v, want %v", got[:n], want[:n])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("some are lost: %v, %v", got, want)
		}
	})
}
