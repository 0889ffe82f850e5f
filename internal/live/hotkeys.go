package live

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/internal/live/view"
)

// hotKey is a key among the last decisions.
type hotKey struct {
	count, depth int
	holders      []string
}

// hotKeys lists the keys that came more than once among the last decisions of a pool.
func (s *Store) hotKeys(pool string) []view.Hot {
	found := make(map[uint64]*hotKey)
	total := 0
	s.mu.Lock()
	for i := range min(s.last.n, MaxDecisions) {
		e := &s.last.entries[i]
		if e.pool != pool {
			continue
		}
		total++
		if d := &e.decision; d.Keyed && d.HomeCount == 0 {
			k := found[d.Key]
			if k == nil {
				k = &hotKey{depth: e.chars}
				found[d.Key] = k
			}
			k.count++
			if !slices.Contains(k.holders, d.Chosen) {
				k.holders = append(k.holders, d.Chosen)
			}
		}
	}
	s.mu.Unlock()
	list := make([]view.Hot, 0, len(found))
	for key, k := range found {
		if k.count > 1 {
			slices.Sort(k.holders)
			list = append(list, view.Hot{Key: Hex(key), Depth: k.depth, Share: float64(k.count) / float64(total), Homes: 1, Holders: k.holders})
		}
	}
	slices.SortFunc(list, func(a, b view.Hot) int { return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key)) })
	return list[:min(len(list), maxHot)]
}
