package main

import (
	"slices"

	"github.com/warmpath/warmpath/bench/record"
)

// criterion is a bound that warmpath should keep, and what it came to.
type criterion struct {
	Arm   string  `json:"arm"`
	Case  string  `json:"case"`
	What  string  `json:"what"`
	Value float64 `json:"value"`
	// Bound is the largest value allowed, the smallest where AtLeast is set.
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"`
	Unit    string  `json:"unit"`
	Kept    bool    `json:"kept"`
}

// The bounds, against the no-op that gets the same messages.
const (
	addedP50Bound   = 1.10
	addedP99Bound   = 1.20
	costBound       = 1.15
	throughputBound = 0.95
	// tellingBound is for what metrics, the live page and inspection take, as they are
	// by default.
	tellingBound = 1.05
	// scanRate is how fast a body must be read at least, in bytes a second: the
	// difference to the no-op may grow with the body by no more than that.
	scanRate = 1.5e9
)

// criteria judges every arm that has a twin among the arms.
func criteria(all rounds, cases []testCase, arms []arm) (found []criterion) {
	base := slices.IndexFunc(arms, func(a arm) bool { return a.name == baseline })
	for n, a := range arms {
		named := func(name string) int { return slices.IndexFunc(arms, func(b arm) bool { return b.name == name }) }
		twin, quiet := named(a.twin), named(a.quiet)
		for i, c := range cases {
			if quiet >= 0 {
				found = append(found, telling(a.name, c, all.of(i, n), all.of(i, quiet)))
			}
			if twin < 0 {
				continue
			}
			for _, k := range ratios(all.of(i, n), all.of(i, twin), all.of(i, base)) {
				k.Arm, k.Case = a.name, c.String()
				found = append(found, k)
			}
		}
		if a.name == aware && twin >= 0 {
			found = append(found, growths(all, cases, n, twin)...)
		}
	}
	return found
}

// ratios compares an arm with its twin in one case, round by round. What a round
// adds to the P99 may be anything, even below 0, so of it the medians are compared.
func ratios(own, twin, base []sample) []criterion {
	median := func(values []float64) float64 { return record.SpreadOf(values).Median }
	ownAdded, twinAdded := pairs(own, base, p50, minus), pairs(twin, base, p50, minus)
	added := make([]float64, len(own))
	for i := range added {
		added[i] = ownAdded[i] / twinAdded[i]
	}
	addedP99 := median(pairs(own, base, p99, minus)) / median(pairs(twin, base, p99, minus))
	list := []criterion{
		{What: "added P50", Value: median(added), Bound: addedP50Bound},
		{What: "added P99", Value: addedP99, Bound: addedP99Bound},
		{What: "CPU of Envoy and router", Value: median(pairs(own, twin, gatewayCost, over)), Bound: costBound},
		{What: "CPU of router", Value: median(pairs(own, twin, routerCost, over)), Bound: costBound},
		{What: "throughput", Value: median(pairs(own, twin, throughput, over)), Bound: throughputBound, AtLeast: true},
	}
	for i := range list {
		k := &list[i]
		k.Unit = "×"
		k.Kept = k.AtLeast && k.Value >= k.Bound || !k.AtLeast && k.Value <= k.Bound
	}
	return list
}

// telling compares an arm with the one that tells nothing, round by round.
func telling(name string, c testCase, own, quiet []sample) criterion {
	value := record.SpreadOf(pairs(own, quiet, gatewayCost, over)).Median
	return criterion{
		Arm: name, Case: c.String(), What: "CPU of Envoy and router, against everything off",
		Value: value, Bound: tellingBound, Unit: "×", Kept: value <= tellingBound,
	}
}

// growths compares how the difference of an arm to its twin grows with the body
// with what reading it may cost. Cases that differ in more than the size are not
// compared; the first size is the beginning.
func growths(all rounds, cases []testCase, own, twin int) (found []criterion) {
	for i, c := range cases {
		first := slices.IndexFunc(cases, func(d testCase) bool { return d.ModelLast == c.ModelLast })
		if i == first {
			continue
		}
		grown := record.SpreadOf(pairs(all.of(i, own), all.of(i, twin), p50, minus)).Median -
			record.SpreadOf(pairs(all.of(first, own), all.of(first, twin), p50, minus)).Median
		bound := float64(c.Bytes-cases[first].Bytes) / scanRate * 1e6
		found = append(found, criterion{
			Arm: aware, Case: c.String(), What: "growth of the difference",
			Value: grown, Bound: bound, Unit: "µs", Kept: grown <= bound,
		})
	}
	return found
}
