// Package placement orders the endpoints for a key by weighted rendezvous
// hashing: every endpoint gets a score from the key and its own address, and
// the homes of the key are the endpoints in the order of their scores.
//
// The order is a pure function of the key and the membership, so routers agree
// on it without talking. It moves as little as possible: adding an endpoint
// moves only the keys that it wins, removing one moves only the keys it had,
// each to its second home. Keys spread evenly without virtual nodes.
package placement

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Node is one endpoint as the placement sees it.
type Node struct {
	Address string
	Weight  uint32 // at least 1
	// Instance is the machine that the node is one of several on; empty for none.
	Instance string
}

// Index is an immutable list of nodes prepared for scoring. Positions are those
// of the list it was made from.
type Index struct {
	seeds []uint64
	// weights is nil when all are equal: then scores are compared as integers,
	// which gives the same order without a logarithm for each node.
	weights []float64
	// groups is nil unless nodes are on instances.
	groups *grouped
}

// New prepares an index over nodes with distinct addresses.
func New(nodes []Node) Index {
	x := Index{seeds: make([]uint64, len(nodes)), groups: group(nodes)}
	equal := true
	for i, n := range nodes {
		x.seeds[i] = xxhash.Sum64String(n.Address)
		equal = equal && n.Weight == nodes[0].Weight
	}
	if !equal {
		x.weights = make([]float64, len(nodes))
		for i, n := range nodes {
			x.weights[i] = float64(n.Weight)
		}
	}
	return x
}

// Len returns the number of nodes.
func (x Index) Len() int { return len(x.seeds) }

// draw is the number in 0..2^64-1 that a node draws for a key. Key and seed
// are hashes already; the two multiplications break the relation that two
// nodes' draws would otherwise have for all keys alike.
func draw(key, seed uint64) uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	hi, lo := bits.Mul64(key^seed, a)
	return (hi ^ lo) * b
}

// cost turns a draw u into an exponential variable of rate w, -ln(u/2^64)/w:
// the node with the least cost wins a share of the keys proportional to its
// weight (weighted rendezvous hashing, Schindelhauer and Schomaker 2005).
func cost(u uint64, weight float64) float64 {
	return -math.Log((float64(u>>11)+0.5)/(1<<53)) / weight
}

// costFloor is a lower bound of the cost without a logarithm, by
// -ln(v) >= 1-v. Winners draw close to one, where it is tight, so it rules out
// nearly every node.
func costFloor(u uint64, weight float64) float64 {
	return (1 - (float64(u>>11)+0.5)/(1<<53)) / weight
}

// Top fills homes with the positions of the first homes of a key, in order,
// and returns how many there are: the lesser of len(homes) and Len.
func (x Index) Top(key uint64, homes []int) int {
	switch {
	case x.groups != nil:
		return x.topGrouped(key, homes)
	case x.weights == nil:
		return topEqual(x.seeds, key, homes)
	default:
		return x.topWeighted(key, homes)
	}
}

// maxTop bounds the homes asked for at once, so that the scores beside them
// need no allocation.
const maxTop = 8

// topEqual keeps the best draws sorted. Once there are enough of them nearly
// every node fails one comparison.
func topEqual(seeds []uint64, key uint64, homes []int) int {
	var best [maxTop]uint64
	n := min(len(homes), maxTop, len(seeds))
	insert := func(last, i int, u uint64) {
		j := last
		for ; j > 0 && best[j-1] < u; j-- {
			best[j], homes[j] = best[j-1], homes[j-1]
		}
		best[j], homes[j] = u, i
	}
	if n == 0 {
		return 0
	}
	for i, seed := range seeds[:n] {
		insert(i, i, draw(key, seed))
	}
	worst := best[n-1]
	for i := n; i < len(seeds); i++ {
		if u := draw(key, seeds[i]); u > worst {
			insert(n-1, i, u)
			worst = best[n-1]
		}
	}
	return n
}

func (x Index) topWeighted(key uint64, homes []int) int {
	var best [maxTop]float64
	n, limit := 0, min(len(homes), maxTop)
	if limit == 0 {
		return 0
	}
	for i, seed := range x.seeds {
		u, weight := draw(key, seed), x.weights[i]
		if n == limit && costFloor(u, weight) >= best[n-1] {
			continue
		}
		c := cost(u, weight)
		if n == limit && c >= best[n-1] {
			continue
		}
		if n < limit {
			n++
		}
		j := n - 1
		for ; j > 0 && best[j-1] > c; j-- {
			best[j], homes[j] = best[j-1], homes[j-1]
		}
		best[j], homes[j] = c, i
	}
	return n
}

// Before reports whether node i comes before node j in the order of a key. It
// is the order that Top fills in: equal scores go to the lower position.
func (x Index) Before(key uint64, i, j int) bool {
	if x.groups != nil {
		if before, apart := x.groups.before(key, i, j); apart {
			return before
		}
	}
	a, b := draw(key, x.seeds[i]), draw(key, x.seeds[j])
	if x.weights == nil {
		return a > b || a == b && i < j
	}
	ca, cb := cost(a, x.weights[i]), cost(b, x.weights[j])
	return ca < cb || ca == cb && i < j
}

// Rank returns the position of node i in the order of a key; 0 is the home.
func (x Index) Rank(key uint64, i int) int {
	rank := 0
	for j := range x.seeds {
		if j != i && x.Before(key, j, i) {
			rank++
		}
	}
	return rank
}

// First returns the positions of the first n homes of a key, in order; all if there
// are no more. A few take one look at every node.
func (x Index) First(key uint64, n int) []int32 {
	n = min(n, x.Len())
	first := make([]int32, n)
	if n <= maxTop {
		var homes [maxTop]int
		x.Top(key, homes[:n])
		for i := range first {
			first[i] = int32(homes[i])
		}
		return first
	}
	all := make([]int32, x.Len())
	for i := range all {
		all[i] = int32(i)
	}
	x.Select(key, all, n)
	copy(first, all)
	return first
}

// Select reorders a list of positions so that its first n are those that come
// first in the order of a key, in that order.
func (x Index) Select(key uint64, among []int32, n int) {
	// Quickselect, then a sort of what was selected.
	for lo, hi := 0, len(among); n > lo && n < hi; {
		p := x.partition(key, among, lo, hi)
		if p < n {
			lo = p + 1
		} else {
			hi = p
		}
	}
	slices.SortFunc(among[:min(n, len(among))], func(i, j int32) int {
		switch {
		case i == j:
			return 0
		case x.Before(key, int(i), int(j)):
			return -1
		}
		return 1
	})
}

// partition moves what comes before the middle one of among[lo:hi] in front of
// it and returns where that stands then.
func (x Index) partition(key uint64, among []int32, lo, hi int) int {
	mid, last := (lo+hi)/2, hi-1
	among[mid], among[last] = among[last], among[mid]
	p := lo
	for i := lo; i < last; i++ {
		if x.Before(key, int(among[i]), int(among[last])) {
			among[i], among[p] = among[p], among[i]
			p++
		}
	}
	among[p], among[last] = among[last], among[p]
	return p
}
