package main

import (
	"fmt"
	"slices"
	"strings"
)

// criterion is a bound and what came of it.
type criterion struct {
	What  string  `json:"what"`
	Where string  `json:"where"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Bound is the largest value allowed, the smallest where AtLeast is set.
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"`
	Kept    bool    `json:"kept"`
	// Note says what the value was compared with.
	Note string `json:"note,omitempty"`
}

func atMost(what, where string, value, bound float64, unit, note string) criterion {
	return criterion{What: what, Where: where, Value: value, Unit: unit, Bound: bound, Kept: value <= bound, Note: note}
}

func atLeast(what, where string, value, bound float64, unit, note string) criterion {
	return criterion{What: what, Where: where, Value: value, Unit: unit, Bound: bound, AtLeast: true, Kept: value >= bound, Note: note}
}

// The bounds.
const (
	hitsBelow      = 1    // points that auto's hit rate may be below the best fixed length's
	slowerThanBest = 1.15 // of auto's P90 to the best
	hotBusiest     = 1.3  // busiest over the mean while one prefix has 60 %
	routersCost    = 1    // points that eight routers may lose
	mixedWorse     = 1.05 // of auto's P90 to fixed hashing with known weights
)

// criteria judges the report. What was not run is not judged.
func (r *report) criteria() (all []criterion) {
	all = append(all, r.hitCriteria()...)
	all = append(all, r.hotCriteria()...)
	all = append(all, r.routersCriteria()...)
	all = append(all, r.scalingCriteria()...)
	all = append(all, r.ratioCriteria()...)
	all = append(all, r.sagemakerCriteria()...)
	all = append(all, r.robustCriteria()...)
	return append(all, r.mixedCriteria()...)
}

// points is the difference of hit rates.
func points(a, b float64) float64 { return 100 * (a - b) }

func (r *report) hitCriteria() (all []criterion) {
	for _, c := range r.Traces {
		a, ok := find(c.Rows, auto)
		best, found := bestFixed(c.Rows)
		if !ok || !found || !c.Prefixes {
			continue
		}
		all = append(all, atLeast("hit rate against the best fixed length with busiest/mean ≤ 1.6", c.Name,
			points(a.HitRate, best.HitRate), -hitsBelow, "points", fmt.Sprintf("%.1f %%, %s %.1f %%", 100*a.HitRate, best.Policy, 100*best.HitRate)))
	}
	for _, c := range r.Traces {
		if a, ok := find(c.Rows, auto); ok && c.FewSessions {
			all = append(all, frontierCriteria(c, a)...)
			all = append(all, r.curveCriteria(c, a)...)
		}
	}
	return all
}

// Differences of hits, in points, and of balance that do not show in the table are none.
const noHits, noBalance = 0.1, 0.01

// loses tells whether a has fewer hits than b, and whether it is less balanced.
func loses(a, b row) (hits, balance bool) {
	return points(a.HitRate, b.HitRate) < -noHits, b.BusiestRequests-a.BusiestRequests < -noBalance
}

// frontierCriteria compare hits and balance with every fixed length.
func frontierCriteria(c compared, a row) []criterion {
	var better, not []string
	for _, f := range c.Rows {
		if !tuned(f.Policy) {
			continue
		}
		hits, balance := loses(a, f)
		fewer, unbalanced := loses(f, a)
		if hits && !unbalanced || balance && !fewer {
			better = append(better, f.Policy)
		}
		if hits || balance {
			not = append(not, f.Policy)
		}
	}
	return []criterion{
		atMost("fixed lengths better in hits or balance and not worse in the other", c.Name, float64(len(better)), 0, "", strings.Join(better, ", ")),
		atMost("fixed lengths that auto does not beat on one axis without losing on the other", c.Name, float64(len(not)), 0, "", strings.Join(not, ", ")),
	}
}

// curveCriteria compare auto's curve with every fixed length: whether there is a
// concurrencyThreshold with which it loses nothing.
func (r *report) curveCriteria(c compared, a row) []criterion {
	i := slices.IndexFunc(r.Frontiers, func(f frontier) bool { return f.Workload == c.Name })
	if i < 0 {
		return nil
	}
	var not []string
	for _, f := range c.Rows {
		if tuned(f.Policy) && !slices.ContainsFunc(append([]row{a}, r.Frontiers[i].Rows...), func(x row) bool {
			hits, balance := loses(x, f)
			return !hits && !balance
		}) {
			not = append(not, f.Policy)
		}
	}
	return []criterion{atMost("fixed lengths that auto with a threshold does not beat on one axis without losing on the other", c.Name, float64(len(not)), 0, "", strings.Join(not, ", "))}
}

func (r *report) hotCriteria() (all []criterion) {
	for _, h := range r.Hot {
		if h.Policy != auto {
			continue
		}
		where := "a question follows"
		if h.Whole {
			where = "the whole prompt"
		}
		all = append(all, atMost("busiest/mean with 60 % on one prefix", where, h.Busiest, hotBusiest, "", fmt.Sprintf("served by %d of %d", h.Replicas, fleetSize)))
		if !h.Whole {
			all = append(all, atMost("homes of the prefix after it has cooled to 1 %", where, float64(h.HomesAfter), 1, "", fmt.Sprintf("%d before", h.Homes)))
		}
	}
	return all
}

func (r *report) routersCriteria() (all []criterion) {
	for _, x := range r.Routers {
		if x.Policy == auto {
			all = append(all, atLeast("hit rate of 8 routers against 1", x.Workload, points(x.Eight.HitRate, x.One.HitRate), -routersCost, "points",
				fmt.Sprintf("moved %.2f %%, of one router %.2f %%", 100*x.Eight.MovedShare, 100*x.One.MovedShare)))
		}
	}
	return all
}

// scalingCriteria compare with the best hash of those in balance.
func (r *report) scalingCriteria() (all []criterion) {
	for _, a := range r.Scaling {
		if a.Policy != auto {
			continue
		}
		var best scalingReport
		for _, h := range r.Scaling {
			if h.Workload == a.Workload && h.To == a.To && h.Policy != auto && h.Row.BusiestRequests <= balanced && h.After > best.After {
				best = h
			}
		}
		what, bound := "hit rate in the 30 s after 7 → 8 against consistent hashing", 0.0
		if a.To == 7 {
			what, bound = "hit rate in the 30 s after 8 → 7 against consistent hashing", -1
		}
		if best.Policy != "" {
			all = append(all, atLeast(what, a.Workload, points(a.After, best.After), bound, "points", fmt.Sprintf("%.1f %%, %s %.1f %%", 100*a.After, best.Policy, 100*best.After)))
		}
		all = append(all, atMost("requests over the bound while a replica has room", fmt.Sprintf("%s, to %d", a.Workload, a.To), float64(a.OverBound), 0, "",
			fmt.Sprintf("bounds auto and %d, %d changes", lowThreshold, a.Changes)))
	}
	return all
}

func (r *report) ratioCriteria() []criterion {
	i := slices.IndexFunc(r.Ratios, func(x ratio) bool { return x.Policy == auto })
	if i < 0 {
		return nil
	}
	a := r.Ratios[i]
	smaller := 0
	var names []string
	for _, x := range r.Ratios {
		if x.Policy != auto && !knowing(x.Policy) && x.Largest <= a.Largest {
			smaller++
			names = append(names, fmt.Sprintf("%s %.2f", x.Policy, x.Largest))
		}
	}
	where := fmt.Sprintf("%d workloads", len(a.ByWorkload))
	return []criterion{
		atMost("largest ratio of the P90 to the best policy's", where, a.Largest, slowerThanBest, "×", "at "+a.Workload),
		atMost("policies whose largest ratio is as small", where, float64(smaller), 0, "", strings.Join(names, ", ")),
	}
}
