package prefix

import (
	"math"
	"testing"
	"time"
)

// maxCost is how many times as long as a byte of plain text a byte of any body
// may take. Read token by token, the slowest took 65 to 125 times as long.
const maxCost = 50

// TestHostileCost: no body costs much more than plain text does. Times say nothing
// on a busy machine, but ratios do: of the best of many short rounds, in each of
// which all are measured, one after another.
func TestHostileCost(t *testing.T) {
	const size, rounds = 16 << 10, 20
	bodies, best := make([][]byte, len(hostile)), make([]float64, len(hostile))
	for i, h := range hostile {
		bodies[i] = hostileBody(h.head, h.unit, h.tail, size)
		best[i] = math.Inf(1)
	}
	var s Scanner
	for range rounds {
		for i, h := range hostile {
			start := time.Now()
			s.Reset(Head{Path: h.path}, Options{PrefixLength: 65536})
			s.Feed(bodies[i])
			s.Finish(true)
			best[i] = min(best[i], float64(time.Since(start))/float64(len(bodies[i])))
		}
	}
	for i, h := range hostile {
		cost := best[i] / best[0]
		t.Logf("%6.0f MB/s %5.1f %s", 1e3/best[i], cost, h.name)
		if cost > maxCost {
			t.Errorf("%s: a byte costs %.1f times as much as one of plain text, want %d at most", h.name, cost, maxCost)
		}
	}
}
