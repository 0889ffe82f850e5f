package placement

import (
	"slices"
	"testing"
)

// Nodes whose scores are equal, as when the hashes of two addresses collide, are
// in the order of their positions, whoever asks.
func TestTiesGoToTheLowerPosition(t *testing.T) {
	for name, x := range map[string]Index{
		"equal weights": {seeds: []uint64{7, 7, 7, 7, 7}},
		"weights":       {seeds: []uint64{7, 7, 7, 7, 7}, weights: []float64{2, 2, 2, 2, 2}},
	} {
		for key := range uint64(3) {
			for n := range 6 {
				homes := make([]int, n)
				if got := x.Top(key, homes); got != min(n, 5) || !slices.Equal(homes, []int{0, 1, 2, 3, 4}[:n]) {
					t.Errorf("%s, key %d: the first %d are %v", name, key, n, homes)
				}
			}
			for i := range x.Len() {
				for j := range x.Len() {
					if x.Before(key, i, j) != (i < j) {
						t.Errorf("%s, key %d: %d before %d: %v", name, key, i, j, i >= j)
					}
				}
				if rank := x.Rank(key, i); rank != i {
					t.Errorf("%s, key %d: node %d has rank %d", name, key, i, rank)
				}
			}
			among := []int32{4, 2, 0, 3, 1}
			x.Select(key, among, 3)
			if !slices.Equal(among[:3], []int32{0, 1, 2}) {
				t.Errorf("%s, key %d: selected %v", name, key, among)
			}
		}
	}
}
