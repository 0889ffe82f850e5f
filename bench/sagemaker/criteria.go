package main

import (
	"fmt"
	"slices"
	"strings"
)

// criterion is what the announcement promises, or what its figures follow from, and
// what it came to here.
type criterion struct {
	What string `json:"what"`
	Case string `json:"case"`
	// Strategy is what is judged.
	Strategy string  `json:"strategy"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Bound is the largest value allowed, the smallest where AtLeast is set.
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"`
	Kept    bool    `json:"kept"`
}

// The bounds that are not published ranges.
const (
	// belowCeiling is how many points of the hit rate routing may give away.
	belowCeiling = 1
	// leastShare and largestShare are the published range of the instances' shares,
	// in %.
	leastShare, largestShare = 13.3, 15.4
)

// criteria judges the report.
func (r *report) criteria() []criterion {
	found := []criterion{
		atMost("failed requests", "all", "all", float64(r.failed()), "", 0),
		atLeast("smallest share of a replica", aware, "different prefixes", 100*r.Shares.Least, "%", leastShare),
		atMost("largest share of a replica", aware, "different prefixes", 100*r.Shares.Largest, "%", largestShare),
	}
	// The fixed length is to reach the modest end of what is published, the
	// automatic one the other.
	for _, judged := range []struct {
		strategy string
		end      int
	}{{aware, 1}, {autoAware, 0}} {
		for _, c := range r.Configurations {
			found = append(found, c.criteria(judged.strategy, judged.end)...)
		}
	}
	return found
}

// criteria judges a strategy by an end of the published ranges, 0 or 1.
func (c configurationReport) criteria(strategy string, end int) (found []criterion) {
	i := slices.IndexFunc(c.Strategies, func(s strategyReport) bool { return s.Name == strategy })
	if i < 0 {
		return nil
	}
	s, name := c.Strategies[i], c.String()
	found = append(found, atMost("hit rate below the ceiling", strategy, name, 100*s.BelowCeiling.Median, "points", belowCeiling))
	switch {
	case !c.Open:
		found = append(found, atLeast("change of throughput", strategy, name, s.ThroughputChange.Median, "%", c.published.Throughput[1-end]))
	case c.Stream:
		found = append(
			found, atMost("change of P50", strategy, name, s.P50Change.Median, "%", c.published.P50[end]),
			atMost("change of P90", strategy, name, s.P90Change.Median, "%", c.published.P90[end]),
		)
	}
	return found
}

func atMost(what, strategy, where string, value float64, unit string, bound float64) criterion {
	return criterion{What: what, Strategy: strategy, Case: where, Value: value, Unit: unit, Bound: bound, Kept: value <= bound}
}

func atLeast(what, strategy, where string, value float64, unit string, bound float64) criterion {
	return criterion{What: what, Strategy: strategy, Case: where, Value: value, Unit: unit, Bound: bound, AtLeast: true, Kept: value >= bound}
}

// failed is how many of all requests failed.
func (r *report) failed() (sum int) {
	for _, c := range r.Configurations {
		for _, s := range c.Strategies {
			sum += count(s.Failed)
		}
	}
	return sum + count(r.Shares.Failed)
}

func count(failed map[string]int) (sum int) {
	for _, n := range failed {
		sum += n
	}
	return sum
}

// String is the value with its bound.
func (c criterion) String() string {
	sign := "≤"
	if c.AtLeast {
		sign = "≥"
	}
	value := strings.TrimSpace(fmt.Sprintf("%.1f %s", c.Value, c.Unit))
	return fmt.Sprintf("%s (%s %g)", value, sign, c.Bound)
}
