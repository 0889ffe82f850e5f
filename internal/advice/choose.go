package advice

import (
	"slices"
	"time"
)

// Run is what one setting has given on a fleet.
type Run struct {
	// Setting is its name, Threshold the bound of outstanding requests, 0 for auto.
	Setting   string
	Threshold int
	Replicas  int
	// Hit is the share of prompt tokens found in caches, 0 to 1; P50 and P90 are
	// quantiles of the time to the first token; Busiest is what the busiest replica
	// had of the requests over the mean.
	Hit      float64
	P50, P90 time.Duration
	Busiest  float64
}

// Differences that do not count. Routers, arrival and prompts of another day make
// more of a difference than these.
const (
	// SamePoints is how far two hit rates may be apart, and SameTime what one P90
	// may have over another, to be equally good.
	SamePoints = 0.01
	SameTime   = 1.05
	// KeepPoints is how much more another setting has to hit for today's to be
	// left: less is not worth a change, if nothing becomes faster.
	KeepPoints = 0.02
	// ClearTime is what a threshold of one's own has to win, to be worth a number
	// that has to be thought of whenever the fleet or the traffic changes.
	ClearTime = 0.9
	// FleetPoints and FleetTime are what a smaller fleet may lose.
	FleetPoints = 0.02
	FleetTime   = 1.25
	// QuietTime: when a tenth of the load has a P90 that is no better than by this,
	// nothing waits.
	QuietTime = 1.1
	// LittleShared is the share of the input below which no cache is worth much.
	LittleShared = 0.02
)

// Choose returns the first of the runs that is as good as the best: the one with
// the lowest P90, by which users judge, and of those alike the one that hits most.
// The runs are in the order in which they are preferred; there must be one.
func Choose(runs []Run) Run {
	lowest := runs[0].P90
	for _, r := range runs {
		lowest = min(lowest, r.P90)
	}
	most := 0.0
	for _, r := range runs {
		if asFast(r.P90, lowest) {
			most = max(most, r.Hit)
		}
	}
	for _, r := range runs {
		if asFast(r.P90, lowest) && r.Hit >= most-SamePoints {
			return r
		}
	}
	return runs[0] // not reached: the one that hits most is among them
}

func asFast(a, b time.Duration) bool { return float64(a) <= SameTime*float64(b) }

// Keep reports whether a need not be left for b.
func Keep(a, b Run) bool { return asFast(a.P90, b.P90) && a.Hit >= b.Hit-KeepPoints }

// Bounded returns the run that clearly beats auto, which has the automatic bound,
// by a bound of its own, or auto.
func Bounded(auto Run, others []Run) Run {
	best := auto
	for _, r := range others {
		if float64(r.P90) <= ClearTime*float64(auto.P90) && r.Hit >= auto.Hit-SamePoints && r.P90 < best.P90 {
			best = r
		}
	}
	return best
}

// Quiet reports whether nothing waits: slow is the same run at a tenth of the load.
func Quiet(run, slow Run) bool { return float64(run.P90) <= QuietTime*float64(slow.P90) }

// Smallest returns the smallest of some fleets, in ascending order, that no larger
// one clearly beats; not enough if that is the largest, of which nothing is known
// then. A larger fleet need not hit more: it may be fast enough to let prompts be
// prefilled twice.
func Smallest(fleets []Run) (smallest Run, enough bool) {
	last := fleets[len(fleets)-1]
	smallest, hit, p90 := last, last.Hit, last.P90 // of the larger ones
	for _, f := range slices.Backward(fleets[:len(fleets)-1]) {
		if f.Hit >= hit-FleetPoints && float64(f.P90) <= FleetTime*float64(p90) {
			smallest, enough = f, true
		}
		hit, p90 = max(hit, f.Hit), min(p90, f.P90)
	}
	return smallest, enough
}

// Sizes returns the fleets to try around one of n replicas, in ascending order, n
// among them.
func Sizes(n, most int) (sizes []int) {
	for _, quarters := range []int{1, 2, 3, 4, 6, 8, 16} {
		size := min((n*quarters+3)/4, most)
		if size > 0 && (len(sizes) == 0 || size > sizes[len(sizes)-1]) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}
