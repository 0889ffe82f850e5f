package main

import (
	"fmt"
	"slices"
	"strings"
)

// criterion is what the announcement promises, or what its figures follow from, and
// what it came to here.
type criterion struct {
	What  string  `json:"what"`
	Case  string  `json:"case"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
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
		atMost("failed requests", "all", float64(r.failed()), "", 0),
		atLeast("smallest share of a replica", "different prefixes", 100*r.Shares.Least, "%", leastShare),
		atMost("largest share of a replica", "different prefixes", 100*r.Shares.Largest, "%", largestShare),
	}
	for _, c := range r.Configurations {
		i := slices.IndexFunc(c.Strategies, func(s strategyReport) bool { return s.Name == aware })
		if i < 0 {
			continue
		}
		s, name := c.Strategies[i], c.String()
		found = append(found, atMost("hit rate below the ceiling", name, 100*s.BelowCeiling.Median, "points", belowCeiling))
		switch {
		case !c.Open:
			found = append(found, atLeast("change of throughput", name, s.ThroughputChange.Median, "%", c.published.Throughput[0]))
		case c.Stream:
			found = append(
				found, atMost("change of P50", name, s.P50Change.Median, "%", c.published.P50[1]),
				atMost("change of P90", name, s.P90Change.Median, "%", c.published.P90[1]),
			)
		}
	}
	return found
}

func atMost(what, where string, value float64, unit string, bound float64) criterion {
	return criterion{What: what, Case: where, Value: value, Unit: unit, Bound: bound, Kept: value <= bound}
}

func atLeast(what, where string, value float64, unit string, bound float64) criterion {
	return criterion{What: what, Case: where, Value: value, Unit: unit, Bound: bound, AtLeast: true, Kept: value >= bound}
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
