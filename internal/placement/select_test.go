package placement

import (
	"slices"
	"strconv"
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

// First gives the beginning of what sorting all of them would.
func TestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i := range rapid.IntRange(0, 40).Draw(t, "nodes") {
			nodes = append(nodes, Node{
				Address: string(rune('a' + i)), Weight: uint32(rapid.IntRange(1, 3).Draw(t, "weight")),
				Instance: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "instance"),
			})
		}
		x := New(nodes)
		key, n := rapid.Uint64().Draw(t, "key"), rapid.IntRange(0, 50).Draw(t, "n")
		want := make([]int32, len(nodes))
		for i := range want {
			want[x.Rank(key, i)] = int32(i)
		}
		if got := x.First(key, n); !slices.Equal(got, want[:min(n, len(want))]) {
			t.Fatalf("%v, want the first %d of %v", got, n, want)
		}
	})
}

// Few of many are found without a list of all.
func TestFirstOfManyAllocatesLittle(t *testing.T) {
	nodes := make([]Node, 10_000)
	for i := range nodes {
		nodes[i] = Node{Address: strconv.Itoa(i), Weight: 1}
	}
	x := New(nodes)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.First(1, 3)
		}
	})
	if n := result.AllocedBytesPerOp(); n > 64 {
		t.Errorf("%d bytes for the first 3", n)
	}
}
