package placement

import (
	"fmt"
	"testing"
)

// Equal weights, whatever they are, need no logarithm; one that differs, wherever it
// stands, needs them all.
func TestWeightsAreKeptWhereTheyDiffer(t *testing.T) {
	for _, c := range []struct {
		weights []uint32
		kept    bool
	}{
		{nil, false},
		{[]uint32{7}, false},
		{[]uint32{1, 1, 1}, false},
		{[]uint32{1000, 1000, 1000}, false},
		{[]uint32{2, 1, 1}, true},
		{[]uint32{1, 2, 1}, true},
		{[]uint32{1, 1, 2}, true},
	} {
		nodes := make([]Node, len(c.weights))
		for i, w := range c.weights {
			nodes[i] = Node{Address: fmt.Sprintf("10.0.0.%d:80", i), Weight: w}
		}
		x := New(nodes)
		if (x.weights != nil) != c.kept || x.Len() != len(nodes) {
			t.Errorf("%v: kept %v of %d nodes", c.weights, x.weights, x.Len())
		}
		for i, w := range x.weights {
			if w != float64(c.weights[i]) {
				t.Errorf("%v: node %d weighs %v", c.weights, i, w)
			}
		}
	}
}
