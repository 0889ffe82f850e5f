package main

import (
	"fmt"
	"slices"
	"strings"
)

func (r *report) writeRouters(b *strings.Builder) {
	if len(r.Routers) == 0 {
		return
	}
	b.WriteString("\n### Eight routers that know nothing of each other\n\n")
	t := newTable(b, "workload", "policy", "hit % with 1", "with 8", "TTFT P90 ms with 1", "with 8", "busiest/mean with 1", "with 8", "moved % with 1", "with 8")
	for _, x := range r.Routers {
		t.row(slices.Concat(
			[]string{x.Workload, x.Policy}, number("%.1f", 100*x.One.HitRate, 100*x.Eight.HitRate), number("%.0f", x.One.P90, x.Eight.P90),
			number("%.2f", x.One.BusiestRequests, x.Eight.BusiestRequests, 100*x.One.MovedShare, 100*x.Eight.MovedShare))...)
	}
}

func (r *report) writeScaling(b *strings.Builder) {
	if len(r.Scaling) == 0 {
		return
	}
	b.WriteString("\n### The 30 s after a change of the fleet\n\nEach change in a run of its own, at times spread over the trace; the hit rate of all of them together, and of several seeds where few sessions run.\n\n")
	t := newTable(b, "workload", "change", "policy", "seeds", "hit % after", "without the change", "busiest/mean, whole run")
	for _, x := range r.Scaling {
		changed := "7 → 8"
		if x.To == 7 {
			changed = "8 → 7"
		}
		t.row(slices.Concat([]string{x.Workload, changed, x.Policy, fmt.Sprint(x.Seeds)}, number("%.1f", 100*x.After, 100*x.Same), number("%.2f", x.Row.BusiestRequests))...)
	}
}

func (r *report) writeRobust(b *strings.Builder) {
	if len(r.Robust) == 0 {
		return
	}
	b.WriteString("\n### Other seeds, fleets, caches and loads\n\nWith few sessions the P90 is that of the requests of several seeds together.\n\n")
	t := newTable(b, "what is changed", "workload", "outstanding", "auto hit %", "busiest/mean", "best fixed length in balance", "its hit %", "seeds", "auto P90 ms", "lowest P90", "of", "ratio")
	for _, c := range r.Robust {
		fixed, hits := "none", "–"
		if c.Fixed != nil {
			fixed, hits = c.Fixed.Policy, fmt.Sprintf("%.1f", 100*c.Fixed.HitRate)
		}
		t.row(slices.Concat(
			[]string{c.Variant, c.Workload}, number("%.1f", c.Auto.Outstanding, 100*c.Auto.HitRate), number("%.2f", c.Auto.BusiestRequests),
			[]string{fixed, hits}, number("%.0f", float64(c.Seeds), c.Timed.P90, c.Fastest.P90), []string{c.Fastest.Policy}, number("%.2f", c.ratio()))...)
	}
}

func (r *report) writeMixed(b *strings.Builder) {
	if len(r.Mixed) == 0 {
		return
	}
	b.WriteString("\n### Replicas of two speeds\n\nHalf of them are twice as fast and have twice the weight.\n\n")
	t := newTable(b, "workload", "policy", "hit %", "TTFT mean ms", "P50", "P90", "P99")
	for _, m := range r.Mixed {
		for _, x := range m.Rows {
			t.row(slices.Concat([]string{m.Workload, x.Policy}, number("%.1f", 100*x.HitRate), number("%.0f", x.Mean, x.P50, x.P90, x.P99))...)
		}
	}
}
