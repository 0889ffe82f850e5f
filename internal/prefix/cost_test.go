package prefix

import (
	"math"
	"testing"
	"time"
)

// maxCost is how many times as long as a byte of plain text a byte of any body
// may take.
const maxCost = 30

// TestHostileCost: no body costs much more than plain text does. Times are of no
// use on a busy machine, but ratios are: the best of several rounds, in each of
// which all are measured, one after another.
func TestHostileCost(t *testing.T) {
	const size, rounds = 128 << 10, 25
	bodies := make([][]byte, len(hostile))
	best := make([]float64, len(hostile))
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
	plain := best[0]
	for i, h := range hostile {
		t.Logf("%6.0f MB/s %5.1f %s", 1e3/best[i], best[i]/plain, h.name)
		if best[i] > maxCost*plain {
			t.Errorf("%s: a byte costs %.1f times as much as one of plain text, want %d at most", h.name, best[i]/plain, maxCost)
		}
	}
}
