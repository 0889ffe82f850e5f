package route

import "math"

// bounds computes how many requests may be outstanding at each candidate, on
// one reading of the loads, so that all candidates are measured alike.
type bounds struct {
	threshold int64 // a fixed threshold, the same for all; 0 = auto
	// perWeight is the mean load for one unit of weight, the arriving request
	// counted in.
	perWeight float64
	// loose bounds are those of decisions by cost.
	loose bool
}

func (t *Table) bounds(threshold int) bounds {
	if t.whole != nil {
		t = t.whole
	}
	if threshold != AutoConcurrencyThreshold {
		return bounds{threshold: int64(threshold)}
	}
	total := int64(1)
	for i := range t.candidates {
		total += t.candidates[i].counter.Load()
	}
	return bounds{perWeight: float64(total) / t.totalWeight}
}

func (b bounds) of(c *candidate) int64 {
	if b.threshold > 0 {
		return b.threshold
	}
	if b.loose {
		return looseBound(b.perWeight * c.weight)
	}
	return autoBound(b.perWeight * c.weight)
}

// autoBound is the bound for a mean load, the arriving request included:
//
//	max(1.25*mean, mean + min(10, 3*sqrt(mean)+1)), rounded up
//
// The relative part is bounded-load consistent hashing (Mirrokni, Thorup and
// Zadimoghaddam 2016). With few requests in flight it alone would overflow on
// Poisson noise; three standard deviations above the mean do not. For example
// a mean of 1 gives 5, 10 gives 20, 40 gives 50, 100 gives 125. It is at least
// 1, and above the mean, so not every endpoint can be full.
func autoBound(mean float64) int64 {
	return int64(math.Ceil(max(1.25*mean, mean+min(10, 3*math.Sqrt(mean)+1))))
}
