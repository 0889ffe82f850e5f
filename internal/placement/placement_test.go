package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

func nodes(n int) []Node {
	list := make([]Node, n)
	for i := range list {
		list[i] = Node{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1), Weight: 1}
	}
	return list
}

func home(x Index, key uint64) int {
	var h [1]int
	x.Top(key, h[:])
	return h[0]
}

// key makes the i-th key as the product does: by xxhash over different text.
func key(i int) uint64 { return xxhash.Sum64String(fmt.Sprintf("prompt %d", i)) }

func TestKeysSpreadEvenly(t *testing.T) {
	const keys = 100_000
	for _, tc := range []struct {
		nodes     int
		max, min  float64
		secondMax float64 // of the second homes of one node's keys
	}{
		{nodes: 7, max: 1.05, min: 0.95, secondMax: 1.1},
		{nodes: 10, max: 1.05, min: 0.95, secondMax: 1.1},
		{nodes: 32, max: 1.08, min: 0.92, secondMax: 1.35},
		{nodes: 128, max: 1.15, min: 0.86, secondMax: 2.3},
	} {
		x := New(nodes(tc.nodes))
		counts := make([]int, tc.nodes)
		seconds := make([]int, tc.nodes)
		for i := range keys {
			var h [2]int
			x.Top(key(i), h[:])
			counts[h[0]]++
			if h[0] == 0 {
				seconds[h[1]]++
			}
		}
		mean := float64(keys) / float64(tc.nodes)
		if got := float64(slices.Max(counts)) / mean; got > tc.max {
			t.Errorf("%d nodes: busiest/mean = %.3f, want at most %.2f", tc.nodes, got, tc.max)
		}
		if got := float64(slices.Min(counts)) / mean; got < tc.min {
			t.Errorf("%d nodes: idlest/mean = %.3f, want at least %.2f", tc.nodes, got, tc.min)
		}
		secondMean := float64(counts[0]) / float64(tc.nodes-1)
		if got := float64(slices.Max(seconds)) / secondMean; got > tc.secondMax {
			t.Errorf("%d nodes: busiest second home/mean = %.3f, want at most %.2f", tc.nodes, got, tc.secondMax)
		}
	}
}

func TestWeightsShareTheKeys(t *testing.T) {
	list := nodes(5)
	for i := range list {
		list[i].Weight = uint32(i + 1)
	}
	x := New(list)
	const keys = 150_000
	counts := make([]int, len(list))
	for i := range keys {
		counts[home(x, key(i))]++
	}
	for i, c := range counts {
		want := float64(keys) * float64(i+1) / 15
		if got := float64(c) / want; got < 0.97 || got > 1.03 {
			t.Errorf("weight %d: got %.3f of its share", i+1, got)
		}
	}
}

// A change of membership moves only the keys that it must, and to the node
// that was added.
func TestAddingMovesOnlyToTheNewNode(t *testing.T) {
	const keys = 50_000
	for _, n := range []int{1, 2, 7, 31} {
		for _, weight := range []uint32{1, 3} {
			all := nodes(n + 1)
			all[n].Weight = weight
			before, after := New(all[:n]), New(all)
			moved := 0
			for i := range keys {
				was, is := home(before, key(i)), home(after, key(i))
				if was == is {
					continue
				}
				if is != n {
					t.Fatalf("%d+1 nodes: key %d moved from %d to %d, an old node", n, i, was, is)
				}
				moved++
			}
			share := float64(weight) / float64(uint32(n)+weight)
			if got := float64(moved) / keys; got > 1.1*share || got < 0.9*share {
				t.Errorf("%d+1 nodes, weight %d: %.4f of the keys moved, want %.4f", n, weight, got, share)
			}
		}
	}
}

// sortAll is the dumb twin: it scores and sorts everything.
func sortAll(x Index, key uint64) []int {
	order := make([]int, x.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if x.Before(key, i, j) {
			return -1
		}
		return 1
	})
	return order
}

func TestTopEqualsSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := nodes(rapid.IntRange(1, 40).Draw(t, "nodes"))
		maxWeight := rapid.SampledFrom([]uint32{1, 2, 1000}).Draw(t, "max weight")
		for i := range list {
			list[i].Weight = rapid.Uint32Range(1, maxWeight).Draw(t, "weight")
			list[i].Instance = rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "instance")
		}
		x, k := New(list), rapid.Uint64().Draw(t, "key")
		want := sortAll(x, k)
		for _, n := range []int{0, 1, 2, 3, maxTop} {
			got := make([]int, n)
			got = got[:x.Top(k, got)]
			if !slices.Equal(got, want[:min(n, len(want))]) {
				t.Fatalf("Top(%d) = %v, sorting gives %v", n, got, want)
			}
		}
		for rank, i := range want {
			if got := x.Rank(k, i); got != rank {
				t.Fatalf("Rank(%d) = %d, want %d", i, got, rank)
			}
		}
	})
}

// The homes of a key are a function of the set of nodes, not of their order.
func TestMemberOrderNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := nodes(rapid.IntRange(1, 30).Draw(t, "nodes"))
		if rapid.Bool().Draw(t, "weighted") {
			for i := range list {
				list[i].Weight = uint32(i%4 + 1)
			}
		}
		shuffled := slices.Clone(list)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(list), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		k := rapid.Uint64().Draw(t, "key")
		a, b := sortAll(New(list), k), sortAll(New(shuffled), k)
		for i := range a {
			if list[a[i]].Address != shuffled[b[i]].Address {
				t.Fatalf("rank %d: %s or %s by member order", i, list[a[i]].Address, shuffled[b[i]].Address)
			}
		}
	})
}

// Equal weights of any size give the order of weight one: the integer path and
// the logarithmic path agree.
func TestEqualWeightsOrderAlike(t *testing.T) {
	list := nodes(20)
	heavy := slices.Clone(list)
	for i := range heavy {
		heavy[i].Weight = 5
	}
	logarithmic := New(heavy)
	logarithmic.weights = slices.Repeat([]float64{5}, len(heavy))
	for i := range 5_000 {
		if !slices.Equal(sortAll(New(list), key(i)), sortAll(logarithmic, key(i))) {
			t.Fatalf("key %d: order differs", i)
		}
	}
}

// These homes are pinned: routers of different releases share a fleet, so a
// change here moves keys and is a breaking change.
func TestGolden(t *testing.T) {
	x := New(nodes(7))
	weighted := nodes(7)
	weighted[2].Weight = 4
	w := New(weighted)
	for _, tc := range []struct {
		key            uint64
		want, weighted []int
	}{
		{key: 0x0, want: []int{6, 3, 4}, weighted: []int{6, 3, 2}},
		{key: 0x1, want: []int{4, 1, 3}, weighted: []int{4, 1, 3}},
		{key: 0xdeadbeef, want: []int{1, 0, 4}, weighted: []int{1, 0, 4}},
		{key: 0xffffffffffffffff, want: []int{2, 3, 0}, weighted: []int{2, 3, 0}},
	} {
		got, gotWeighted := make([]int, 3), make([]int, 3)
		x.Top(tc.key, got)
		w.Top(tc.key, gotWeighted)
		if !slices.Equal(got, tc.want) || !slices.Equal(gotWeighted, tc.weighted) {
			t.Errorf("{key: %#x, want: %#v, weighted: %#v},", tc.key, got, gotWeighted)
		}
	}
}

// Compare releases with
//
//	go test -run - -bench Top -count 10 ./internal/placement | tee new.txt
//	benchstat old.txt new.txt
func BenchmarkTop(b *testing.B) {
	for _, n := range []int{7, 128, 10_000} {
		for _, weighted := range []bool{false, true} {
			list := nodes(n)
			if weighted {
				list[0].Weight = 2
			}
			x := New(list)
			b.Run(fmt.Sprintf("nodes=%d/weighted=%v", n, weighted), func(b *testing.B) {
				b.ReportAllocs()
				var homes [3]int
				k := uint64(1)
				for b.Loop() {
					k += 0x9e3779b97f4a7c15
					x.Top(k, homes[:])
				}
			})
		}
	}
}
