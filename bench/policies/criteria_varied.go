package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// promise is what has to be reached on one of SageMaker's workloads: changes in %
// against random routing, and points below the ceiling of the hit rate.
type promise struct {
	workload             string
	below                float64
	p50, p90, throughput float64 // 0 is none
}

func promises() []promise {
	return []promise{{"SageMaker long", 1, -77, -37, 16}, {"SageMaker short", 0, -16, -37, 0}}
}

func change(a, b float64) float64 { return 100 * (a/b - 1) }

func (r *report) sagemakerCriteria() (all []criterion) {
	for _, s := range r.SageMaker {
		i := slices.IndexFunc(promises(), func(p promise) bool { return p.workload == s.Name })
		a, ok := find(s.Rows, auto)
		base, random := find(s.Rows, random)
		if i < 0 || !ok || !random {
			continue
		}
		p := promises()[i]
		where := fmt.Sprintf("%s, %g requests/s", s.Name, s.Speed)
		if p.below > 0 {
			all = append(all, atLeast("hit rate against the ceiling", where, points(a.HitRate, s.Ceiling), -p.below, "points", fmt.Sprintf("%.1f of %.1f %%", 100*a.HitRate, 100*s.Ceiling)))
		}
		all = append(all,
			atMost("P50 against random", where, change(a.P50, base.P50), p.p50, "%", fmt.Sprintf("%.0f → %.0f ms", base.P50, a.P50)),
			atMost("P90 against random", where, change(a.P90, base.P90), p.p90, "%", fmt.Sprintf("%.0f → %.0f ms", base.P90, a.P90)))
		closedAuto, _ := find(s.Closed, auto)
		closedBase, _ := find(s.Closed, "random")
		if p.throughput > 0 {
			all = append(all, atLeast("throughput against random", fmt.Sprintf("%s, %d in flight", s.Name, s.InFlight), change(closedAuto.Throughput, closedBase.Throughput),
				p.throughput, "%", fmt.Sprintf("%.0f → %.0f tokens/s", closedBase.Throughput, closedAuto.Throughput)))
		}
	}
	return all
}

// robustCriteria has the worst workload of every variant.
func (r *report) robustCriteria() (all []criterion) {
	var names []string
	for _, c := range r.Robust {
		if !slices.Contains(names, c.Variant) {
			names = append(names, c.Variant)
		}
	}
	for _, name := range names {
		worst, at, with := math.Inf(1), "", ""
		slowest, slowAt, slowWith := 0.0, "", ""
		for _, c := range r.Robust {
			if c.Variant != name {
				continue
			}
			if c.Fixed != nil && c.Prefixes {
				if d := points(c.Auto.HitRate, c.Fixed.HitRate); d < worst {
					worst, at, with = d, c.Workload, c.Fixed.Policy
				}
			}
			if x := c.ratio(); x > slowest {
				slowest, slowAt, slowWith = x, c.Workload, c.Fastest.Policy
			}
		}
		if at != "" {
			all = append(all, atLeast("least hit rate against the best fixed length with busiest/mean ≤ 1.6", name, worst, -hitsBelow, "points", fmt.Sprintf("%s, %s", at, with)))
		}
		all = append(all, atMost("largest ratio of the P90 to the best policy's", name, slowest, slowerThanBest, "×", fmt.Sprintf("%s, %s", slowAt, slowWith)))
	}
	return all
}

// ratio is that of auto's P90 to the best.
func (c comparison) ratio() float64 { return c.Timed.P90 / max(c.Fastest.P90, 1e-9) }

func (r *report) mixedCriteria() (all []criterion) {
	for _, m := range r.Mixed {
		a, _ := find(m.Rows, auto)
		var best row
		for _, x := range m.Rows {
			if x.Policy != auto && (best.Policy == "" || x.P90 < best.P90) {
				best = x
			}
		}
		all = append(all, atMost("P90 on replicas of two speeds against fixed hashing with weights", m.Workload, a.P90/max(best.P90, 1e-9), mixedWorse, "×",
			fmt.Sprintf("%s %.0f ms", best.Policy, best.P90)))
	}
	return all
}

// String is the value with its bound.
func (c criterion) String() string {
	sign := "≤"
	if c.AtLeast {
		sign = "≥"
	}
	format := "%.2f"
	switch {
	case c.Unit == "points" || c.Unit == "%":
		format = "%+.1f"
	case c.Unit == "" && c.Value == math.Trunc(c.Value):
		format = "%.0f"
	}
	value := strings.TrimSpace(fmt.Sprintf(format+" %s", c.Value, c.Unit))
	return fmt.Sprintf("%s (%s %g)", value, sign, c.Bound)
}
