package main

import (
	"fmt"
	"slices"
	"strings"
)

// table writes a Markdown table.
type table struct {
	b     *strings.Builder
	width int
}

func newTable(b *strings.Builder, heads ...string) table {
	t := table{b, len(heads)}
	t.row(heads...)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	return t
}

func (t table) row(cells ...string) { t.b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func number(format string, values ...float64) (cells []string) {
	for _, v := range values {
		cells = append(cells, fmt.Sprintf(format, v))
	}
	return cells
}

// markdown renders the report for people, as sections of a larger document.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("## Policies compared\n\n")
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	fmt.Fprintf(&b, "- it took %.0f minutes\n", r.Minutes)
	r.writeCriteria(&b)
	r.writeRatios(&b)
	r.writeWorkloads(&b)
	r.writeFrontiers(&b)
	r.writeSageMaker(&b)
	r.writeHot(&b)
	r.writeRouters(&b)
	r.writeScaling(&b)
	r.writeRobust(&b)
	r.writeMixed(&b)
	return b.String()
}

func (r *report) writeCriteria(b *strings.Builder) {
	kept := 0
	for _, c := range r.Criteria {
		if c.Kept {
			kept++
		}
	}
	fmt.Fprintf(b, "\n### The bounds\n\n%d of %d are kept.\n\n", kept, len(r.Criteria))
	t := newTable(b, "what", "where", "here (bound)", "kept", "")
	for _, c := range r.Criteria {
		kept := "yes"
		if !c.Kept {
			kept = "**no**"
		}
		t.row(c.What, c.Where, c.String(), kept, c.Note)
	}
}

func (r *report) writeRatios(b *strings.Builder) {
	all := r.workloads()
	if len(all) == 0 {
		return
	}
	b.WriteString("\n### The P90 of the time to the first token over the best policy's\n\n" +
		"The best is that of the policies that do not know the caches; the policies are in the order of their largest ratio.\n\n")
	heads := []string{"policy", "largest"}
	for _, c := range all {
		heads = append(heads, c.Name)
	}
	t := newTable(b, heads...)
	for _, x := range r.Ratios {
		cells := []string{x.Policy, shortRatio(x.Largest)}
		for _, v := range x.ByWorkload {
			cells = append(cells, shortRatio(v))
		}
		t.row(cells...)
	}
}

// shortRatio has no decimals where they say nothing.
func shortRatio(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func (r *report) writeWorkloads(b *strings.Builder) {
	all := r.workloads()
	if len(all) == 0 {
		return
	}
	b.WriteString("\n### All policies on all workloads\n")
	for _, c := range all {
		fmt.Fprintf(b, "\n#### %s\n\n%d requests", c.Name, c.Requests)
		if c.Rounds > 1 {
			fmt.Fprintf(b, ", %d rounds with other texts and times", c.Rounds)
		}
		fmt.Fprintf(b, ", %d replicas (%s, a cache of %d tokens), speed %g.\n\n", c.Replicas, c.Model, c.Cache, c.Speed)
		writeRows(b, c.Rows)
	}
}

func writeRows(b *strings.Builder, rows []row) {
	t := newTable(b, "policy", "hit %", "TTFT P50 ms", "P90", "P99", "busiest/mean", "by prefill", "overflow %", "moved %", "outstanding")
	for _, x := range rows {
		cells := append([]string{x.Policy}, number("%.1f", 100*x.HitRate)...)
		cells = append(cells, number("%.0f", x.P50, x.P90, x.P99)...)
		cells = append(cells, number("%.2f", x.BusiestRequests, x.BusiestPrefill)...)
		cells = append(cells, number("%.1f", 100*x.OverflowShare)...)
		t.row(append(cells, append(number("%.2f", 100*x.MovedShare), number("%.1f", x.Outstanding)...)...)...)
	}
}

func (r *report) writeFrontiers(b *strings.Builder) {
	if len(r.Frontiers) == 0 {
		return
	}
	b.WriteString("\n### Hits against balance\n\n`auto` with a `concurrencyThreshold` that forces ever more balance.\n")
	for _, f := range r.Frontiers {
		fmt.Fprintf(b, "\n#### %s\n\n", f.Workload)
		t := newTable(b, "threshold", "hit %", "TTFT P50 ms", "P90", "busiest/mean", "by prefill")
		for i, x := range f.Rows {
			cells := append([]string{fmt.Sprint(f.Thresholds[i])}, number("%.1f", 100*x.HitRate)...)
			cells = append(cells, number("%.0f", x.P50, x.P90)...)
			t.row(append(cells, number("%.2f", x.BusiestRequests, x.BusiestPrefill)...)...)
		}
	}
}

func (r *report) writeSageMaker(b *strings.Builder) {
	for _, s := range r.SageMaker {
		fmt.Fprintf(b, "\n### %s at other rates, and in a closed loop\n\nCeiling of the hit rate %.1f %%.\n\n", s.Name, 100*s.Ceiling)
		t := newTable(b, "requests/s", "random P50 ms", "P90", "auto P50", "P90", "change of P50", "change of P90", "auto hit %")
		for _, x := range s.Rates {
			cells := append([]string{fmt.Sprintf("%g", x.Rate)}, number("%.0f", x.Random.P50, x.Random.P90, x.Auto.P50, x.Auto.P90)...)
			cells = append(cells, number("%+.1f %%", change(x.Auto.P50, x.Random.P50), change(x.Auto.P90, x.Random.P90))...)
			t.row(append(cells, number("%.1f", 100*x.Auto.HitRate)...)...)
		}
		fmt.Fprintf(b, "\n%d in flight:\n\n", s.InFlight)
		base, _ := find(s.Closed, random)
		t = newTable(b, "policy", "hit %", "TTFT P50 ms", "P90", "busiest/mean", "output tokens/s", "change")
		for _, x := range s.Closed {
			cells := append([]string{x.Policy}, number("%.1f", 100*x.HitRate)...)
			cells = append(cells, number("%.0f", x.P50, x.P90)...)
			cells = append(cells, number("%.2f", x.BusiestRequests)...)
			cells = append(cells, number("%.0f", x.Throughput)...)
			t.row(append(cells, number("%+.1f %%", change(x.Throughput, base.Throughput))...)...)
		}
	}
}

func (r *report) writeHot(b *strings.Builder) {
	if len(r.Hot) == 0 {
		return
	}
	b.WriteString("\n### One prefix with 60 % of the requests\n\n1 %, then 60 %, then 1 % of the requests have it. Homes are those of the policies that hash.\n\n")
	t := newTable(b, "policy", "the prefix is", "busiest/mean in the hot time", "homes", "replicas that serve it", "homes at the end", "replicas at the end", "TTFT P90 ms")
	for _, h := range r.Hot {
		what := "the beginning"
		if h.Whole {
			what = "the whole prompt"
		}
		homes, after := "–", "–"
		if h.Policy == auto || tuned(h.Policy) || h.Policy == "kubeai" {
			homes, after = fmt.Sprint(h.Homes), fmt.Sprint(h.HomesAfter)
		}
		t.row(slices.Concat([]string{h.Policy, what}, number("%.2f", h.Busiest), []string{homes, fmt.Sprint(h.Replicas), after, fmt.Sprint(h.ReplicasAfter)}, number("%.0f", h.Row.P90))...)
	}
}
