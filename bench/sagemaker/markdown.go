package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/bench/record"
)

// markdown renders a report for people.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# SageMaker's published experiment\n\n")
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	fmt.Fprintf(&b, "- %d simulated replicas (70B class) at %g times real speed, %d rounds of all configurations, the strategies in a random order\n",
		instances, r.TimeScale, r.Rounds)
	fmt.Fprintf(&b, "- a request that a replica answers at once takes %.1f / %.1f / %.1f ms (P50/P90/P99, simulated): what Envoy, warmpath and this machine add\n",
		r.Alone.P50, r.Alone.P90, r.Alone.P99)
	fmt.Fprintf(&b, "- Envoy routed %d requests without warmpath\n\n", r.PassedOver)
	b.WriteString("Times and rates are simulated: the real ones times, or by, the speed. Each figure is the median of the rounds (smallest..largest), " +
		"the P99 of all requests. Changes are against RANDOM in the same round. The ceiling is the hit rate of one cache for all replicas, " +
		"the expectation that of random routing; both are computed from the prompts.\n\n")
	for _, w := range r.workloads() {
		fmt.Fprintf(&b, "- **%s**: %s. PREFIX_AWARE looks at %d characters, or at as many as it finds right (auto).\n", w.Name, w.Says, w.PrefixLength)
	}
	for _, c := range r.Configurations {
		c.write(&b)
	}
	r.Shares.write(&b)
	writeCriteria(&b, r.Criteria)
	return b.String()
}

// workloads are those of the configurations, each once.
func (r *report) workloads() (all []workload) {
	for _, c := range r.Configurations {
		if !slices.ContainsFunc(all, func(w workload) bool { return w.Name == c.Workload.Name }) {
			all = append(all, c.Workload)
		}
	}
	return all
}

func (c *configurationReport) write(b *strings.Builder) {
	name := c.String()
	fmt.Fprintf(b, "\n## %s%s\n\n", strings.ToUpper(name[:1]), name[1:])
	fmt.Fprintf(b, "Ceiling %s %%, expected at random %s %%.\n\n", percent(c.Ceiling), percent(c.AtRandom))
	what := "TTFT"
	if !c.Stream {
		what = "latency"
	}
	fmt.Fprintf(b, "| strategy | requests | failed | hit rate %% | %s P50 ms | P90 ms | P99 ms | output tokens/s | P50 | P90 | tokens/s | busiest/mean |\n", what)
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range c.Strategies {
		fmt.Fprintf(b, "| %s | %d | %d | %s | %v | %v | %.0f | %v | %s | %s | %s | %s |\n", s.Name, s.Requests, count(s.Failed),
			percent(s.HitRate), s.P50, s.P90, s.P99, s.Throughput,
			change(s.P50Change), change(s.P90Change), change(s.ThroughputChange), s.BusiestOverMean.Text("%.2f"))
	}
	c.writePublished(b)
	for _, s := range c.Strategies {
		for _, reason := range slices.Sorted(maps.Keys(s.Failed)) {
			fmt.Fprintf(b, "\n%s: %d requests failed: %s.\n", s.Name, s.Failed[reason], reason)
		}
	}
}

// writePublished writes the row of the announcement: times to first token, and the
// throughput that a closed loop finds. An open loop gets what it asks for.
func (c *configurationReport) writePublished(b *strings.Builder) {
	p50, p90, throughput := "", "", ""
	if c.Stream {
		p50, p90 = interval(c.published.P50), interval(c.published.P90)
	}
	if !c.Open {
		throughput = interval(c.published.Throughput)
	}
	fmt.Fprintf(b, "| published | | 0 | %g → %g | | | | | %s | %s | %s | |\n",
		c.published.HitRate[0], c.published.HitRate[1], p50, p90, throughput)
}

func (s sharesReport) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Shares of the replicas\n\n%d different prefixes, one request each, PREFIX_AWARE, 8 in flight: "+
		"each of %d replicas got %.1f..%.1f %% (published %.1f..%.1f %%), %d failed.\n",
		s.Prefixes, s.Replicas, 100*s.Least, 100*s.Largest, leastShare, largestShare, count(s.Failed))
}

func writeCriteria(b *strings.Builder, all []criterion) {
	b.WriteString("\n## Against what was published\n\n| what | strategy | where | here (bound) | kept |\n|---|---|---|---|---|\n")
	for _, c := range all {
		kept := "yes"
		if !c.Kept {
			kept = "**no**"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %v | %s |\n", c.What, c.Strategy, c.Case, c, kept)
	}
}

// percent is a spread of parts, 0..1, in %.
func percent(s record.Spread) string {
	return record.Spread{Median: 100 * s.Median, Min: 100 * s.Min, Max: 100 * s.Max}.Text("%.1f")
}

func change(s record.Spread) string { return s.Text("%+.1f") + " %" }

func interval(r [2]float64) string { return fmt.Sprintf("%+g..%+g %%", r[0], r[1]) }
