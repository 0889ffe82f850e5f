package route

import (
	"cmp"
	"math"
	"slices"

	"github.com/warmpath/warmpath/internal/affinity"
)

// HotPrefix is a beginning that many recent prompts have in common.
type HotPrefix struct {
	Key uint64
	// Depth is its length, in characters, Share the part of the recent requests that
	// have it, 0 to 1.
	Depth int
	Share float64
	// Homes is how many endpoints its requests are spread over, as far as what follows
	// it does not decide.
	Homes int
	// Holders are the endpoints that have served it, as many as are remembered.
	Holders []string
}

// HotPrefixes returns at most so many prefixes, the hottest first: those at which the
// recent requests part, and that an endpoint of now has served. It looks at a bounded
// number of requests, one at a time, so that it holds decisions up no longer than one of
// them. Without the automatic prefix length and KVAware there are none.
func (r *Router) HotPrefixes(most int) []HotPrefix {
	t := r.Table()
	found := make(map[uint64]HotPrefix)
	for i := 0; t.hotOf(i, found); i++ {
	}
	list := make([]HotPrefix, 0, len(found))
	for _, p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b HotPrefix) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Key, b.Key))
	})
	return list[:min(len(list), most)]
}

// hotOf adds what the i-th kept request tells, and reports whether there is one.
func (t *Table) hotOf(i int, found map[uint64]HotPrefix) bool {
	t.memory.Lock()
	defer t.memory.Unlock()
	if i >= t.memory.Samples() || len(t.candidates) == 0 {
		return false
	}
	total := math.Max(t.memory.Total(), 1)
	t.memory.Hot(i, LevelChars, func(b affinity.Beginning) {
		if _, ok := found[b.Key]; ok {
			return
		}
		p := HotPrefix{Key: b.Key, Depth: b.Chars, Share: math.Min(b.Heat/total, 1), Homes: t.homesFor(b.Heat, b.Heat/total)}
		for _, id := range b.Holders {
			if k := t.candidateOf(id); id != 0 && k >= 0 {
				p.Holders = append(p.Holders, t.candidates[k].address)
			}
		}
		if len(p.Holders) > 0 {
			found[b.Key] = p
		}
	})
	return true
}
