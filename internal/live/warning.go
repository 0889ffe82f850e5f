package live

import (
	"fmt"
	"math"

	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
)

const (
	// skewLimit is how many times the mean the busiest endpoint may have had in a minute.
	skewLimit = 1.6
	// skewSigmas is how many standard deviations it must be above the mean besides, so
	// that few requests, or the largest of many endpoints, are not taken for a skew.
	skewSigmas = 4
	// overflowLimit is the part of a minute's requests that may overflow, of at least
	// overflowRequests.
	overflowLimit    = 0.2
	overflowRequests = 60
)

// skewed warns of a pool whose busiest endpoint has far more than its part of the last
// minute's requests, for its weight.
func skewed(p *view.Pool, policy route.Policy) []view.Warning {
	weight, requests := 0.0, 0.0
	for _, m := range p.Members {
		if m.Bound > 0 {
			weight += float64(m.Weight)
			requests += float64(m.Requests)
		}
	}
	busiest, most := -1, 0.0
	for i, m := range p.Members {
		if m.Bound == 0 || m.Weight == 0 {
			continue
		}
		mean := requests * float64(m.Weight) / weight
		factor := float64(m.Requests) / mean
		if factor > most && float64(m.Requests)-mean > skewSigmas*math.Sqrt(mean) {
			busiest, most = i, factor
		}
	}
	if busiest < 0 || most <= skewLimit || len(p.Members) < 2 {
		return nil
	}
	return []view.Warning{{
		Kind: "skew", Pool: p.Name,
		Text: fmt.Sprintf("Pool %s is skewed: %s had %.1f times its part of the last minute's requests (%d of %.0f).",
			p.Name, p.Members[busiest].Address, most, p.Members[busiest].Requests, requests),
		Advice: skewAdvice(policy),
	}}
}

func skewAdvice(policy route.Policy) string {
	switch {
	case policy.Strategy == route.PrefixAware && policy.PrefixLength != route.AutoPrefixLength:
		return "Many prompts begin with the same prefixLength characters. Set prefixLength: auto, which looks behind what they share, or a lower concurrencyThreshold, which lets the next endpoint help sooner."
	case policy.NeedsKey() && policy.ConcurrencyThreshold != route.AutoConcurrencyThreshold:
		return "A fixed concurrencyThreshold lets that many requests pile up at one endpoint. Set concurrencyThreshold: auto, or a lower one. The hot prefixes show what it serves."
	case policy.NeedsKey():
		return "Look at the hot prefixes: few prompts make up most of the traffic, or answers there take much less time than elsewhere. As long as it has room and the cache hit rate is worth it, nothing needs to be done."
	case policy.Strategy == route.LeastOutstandingRequests:
		return "It answers faster than the others, perhaps with errors: look at its failed requests and its health."
	default:
		return "RANDOM is even in the long run: look whether weights have just changed or endpoints have come and gone."
	}
}

// overflowing warns of a pool whose requests often do not find room where they belong.
func overflowing(p *view.Pool, policy route.Policy) []view.Warning {
	if p.Requests < overflowRequests || p.Overflow <= overflowLimit {
		return nil
	}
	advice := "The pool is too small for its load, or answers take longer than usual: add endpoints (warmpath_pool_wanted_endpoints says how many)."
	switch {
	case roomy(p):
		advice = "There is room in the pool: few prefixes are so hot that their homes cannot prefill them all, and others help. Look at the hot prefixes; while the expected hits stay high, nothing needs to be done."
	case policy.ConcurrencyThreshold != route.AutoConcurrencyThreshold:
		advice = fmt.Sprintf("concurrencyThreshold %d may be too low for this load: set auto or a higher one, or add endpoints.", policy.ConcurrencyThreshold)
	}
	return []view.Warning{{
		Kind:   "overflow",
		Pool:   p.Name,
		Text:   fmt.Sprintf("In pool %s %.0f %% of the last minute's requests did not go to their home because of the load.", p.Name, 100*p.Overflow),
		Advice: advice,
	}}
}

// roomy reports whether less than half of what may run in a pool runs.
func roomy(p *view.Pool) bool {
	var running, bound int64
	for _, m := range p.Members {
		running += m.Outstanding + m.Others
		bound += m.Bound
	}
	return 2*running < bound
}
