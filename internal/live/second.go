package live

import (
	"math/bits"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
)

// reasons is room for all of them.
const reasons = 16

// second is what was decided in one second.
type second struct {
	at            int64 // which one; -1 for none
	requests      uint32
	failed        uint32 // answered in this second
	byReason      [reasons]uint32
	cached, chars uint64
	took          histogram
}

// second returns what is counted of a second, nil if it is too long ago. s.mu is held.
func (s *Store) second(at int64) *second {
	x := &s.seconds[uint64(at)%MaxSeconds]
	switch {
	case at < x.at || at < 0:
		return nil
	case at > x.at:
		*x = second{at: at}
	}
	return x
}

func (x *second) count(r *extproc.Record, cached, chars int) {
	x.requests++
	if i := int(r.Decision.Reason); i < reasons {
		x.byReason[i]++
	}
	if cached != unknown {
		x.cached += uint64(cached)
		x.chars += uint64(chars)
	}
	x.took.add(r.Decided.Sub(r.Scanned))
}

func (x *second) view() view.Second {
	v := view.Second{
		Second: x.at, Requests: x.requests, Failed: x.failed, Cached: x.cached, Characters: x.chars,
		P50: micros(x.took.quantile(0.5)), P99: micros(x.took.quantile(0.99)),
	}
	v.ByReason = append(v.ByReason, x.byReason[:len(route.Reasons())]...)
	return v
}

func micros(d time.Duration) float64 { return float64(d.Round(100*time.Nanosecond)) / 1000 }

// histogram counts durations in four steps for each doubling, from 256 ns to 0.3 s; what
// is longer counts as that.
type histogram [histogramSteps]uint32

const (
	leastBits      = 8 // 256 ns
	mostBits       = 28
	histogramSteps = (mostBits - leastBits + 1) * 4
)

func (h *histogram) add(d time.Duration) { h[step(d)]++ }

// step is the number of a duration's step.
func step(d time.Duration) int {
	n := uint64(max(d, 1<<leastBits))
	doubling := bits.Len64(n) - 1 - leastBits
	if doubling > mostBits-leastBits {
		return histogramSteps - 1
	}
	return doubling*4 + int(n>>(doubling+leastBits-2)&3)
}

// upTo is the end of a step.
func upTo(step int) time.Duration {
	return time.Duration(4+step%4+1) << (step/4 + leastBits - 2)
}

// quantile returns a duration that a share q of those counted does not exceed, at most a
// quarter too long; 0 if there is none.
func (h *histogram) quantile(q float64) time.Duration {
	var total uint64
	for _, n := range h {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	rank := uint64(q*float64(total) + 0.999999)
	var seen uint64
	for i, n := range h {
		if seen += uint64(n); n > 0 && seen >= rank {
			return upTo(i)
		}
	}
	return upTo(histogramSteps - 1)
}
