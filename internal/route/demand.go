package route

import "math"

// Demand is how much a pool has to do against what its endpoints are to have, for
// whoever decides how many there should be.
type Demand struct {
	// Outstanding is how many requests of this router run at the members now, those
	// that drain or are unhealthy included.
	Outstanding int64
	// Bound is how many may run at those that are chosen, each at its bound.
	Bound int64
	// Wanted is how many endpoints of the mean weight there should be for these
	// requests, so that hardly any finds its home at the bound: a fraction, so that
	// those of several routers add up.
	Wanted float64
}

// demandShare is the share of its bound that an endpoint is to have at most. The rest
// is for prefixes that are hotter than others, and for what comes until another
// endpoint is there.
const demandShare = 0.5

// What an endpoint is to have when its bound follows the mean load: the mean at which
// the bound is 1/demandShare times as much. With less the bound leaves more room,
// with more it is no longer the bound that keeps the endpoint from having too much.
const (
	autoDemand  = 10 // see autoBound
	looseDemand = 32 // see looseBound
)

// fixedDemand is what an endpoint is to have with a fixed threshold: the mean above
// which there is room for three standard deviations of a Poisson load, the largest m
// with m + 3*sqrt(m) <= threshold, and at most demandShare of it. For example 8
// gives 2.9, 16 gives 7.6, and 32 gives 16.
func fixedDemand(threshold int) float64 {
	root := math.Sqrt(float64(threshold)+2.25) - 1.5
	return min(root*root, demandShare*float64(threshold))
}

// Demand returns the demand of now. It reads the count of every member, so it is for
// those who look now and then.
func (r *Router) Demand() Demand {
	set, t := r.Membership(), r.Table()
	var d Demand
	for i := range set.Len() {
		if c, ok := r.tracker.Lookup(set.At(i).Address); ok {
			d.Outstanding += c.Outstanding()
		}
	}
	limits := t.demandBounds()
	for i := range t.candidates {
		d.Bound += limits.of(&t.candidates[i])
	}
	d.Wanted = float64(d.Outstanding) / t.policy.demand()
	return d
}

// Bounds tells f how many requests run at each endpoint that may be chosen, those of
// other routers included, and how many may, by the policy of the pool or the one that
// its strategy would have.
func (r *Router) Bounds(f func(address string, load, bound int64)) {
	t := r.Table()
	limits := t.demandBounds()
	for i := range t.candidates {
		c := &t.candidates[i]
		f(c.address, c.counter.Load(), limits.of(c))
	}
}

// Weights tells f the weight of each endpoint that may be chosen, which is smaller in a
// slow start.
func (r *Router) Weights(f func(address string, weight float64)) {
	t := r.Table()
	for i := range t.candidates {
		f(t.candidates[i].address, t.candidates[i].weight)
	}
}

// demandBounds are the bounds that the policy's decisions have, or would have if its
// strategy had any.
func (t *Table) demandBounds() bounds {
	if len(t.candidates) == 0 {
		return bounds{}
	}
	if t.policy.loose() {
		return t.looseBounds(t.policy.threshold())
	}
	return t.bounds(t.policy.threshold())
}

// demand is how many requests are to run at an endpoint.
func (p Policy) demand() float64 {
	switch {
	case p.threshold() != AutoConcurrencyThreshold:
		return fixedDemand(p.threshold())
	case p.loose():
		return looseDemand
	default:
		return autoDemand
	}
}

// threshold is that of a strategy that has one.
func (p Policy) threshold() int {
	if p.NeedsKey() {
		return p.ConcurrencyThreshold
	}
	return AutoConcurrencyThreshold
}

// loose says that what keeps the balance is not the bound.
func (p Policy) loose() bool { return p.Strategy != PrefixAware || p.PrefixLength == AutoPrefixLength }
