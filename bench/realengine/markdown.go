package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown renders a report for people.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# A real engine\n\n")
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	fmt.Fprintf(&b, "- %s, %d replicas: `%s`\n", r.Engine, replicas, r.Flags)
	fmt.Fprintf(&b, "- %d prefixes of %d to %d tokens, each used %d times in random order, one request at a time, answers of %d tokens; caches empty at the start\n\n",
		r.Prefixes, r.Lengths[0], r.Lengths[1], r.Uses, answerTokens)
	fmt.Fprintf(&b, "Of %d requests %s can find their prefix in a cache; whether they did, and the tokens, are what the engine says. "+
		"TTFT is the time to the first chunk with content, in ms.\n\n", r.Prefixes*r.Uses, percent(r.Ceiling))
	b.WriteString("| | warm requests | cached tokens | TTFT mean | P50 | P90 | failed | took |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		arm  armReport
	}{{"Envoy's round robin", r.RoundRobin}, {"warmpath, PREFIX_AWARE, auto", r.Warmpath}} {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f s |\n", row.name, percent(row.arm.WarmRequests), percent(row.arm.CachedTokens), row.arm.columns(), row.arm.Seconds)
	}
	fmt.Fprintf(&b, "\nThe requests (and the prefixes) of the replicas: %s with round robin, %s with warmpath, past which Envoy routed %d.\n",
		r.RoundRobin.spread(), r.Warmpath.spread(), r.PassedOver)
	fmt.Fprintf(&b, "Cached tokens as warmpath knows them: %s read of the answers, %s of the engines' metrics.\n\n",
		percent(r.Told.Answers), percent(r.Told.Metrics))
	r.burstTable(&b)
	b.WriteString("| bound | kept |\n|---|---|\n")
	for _, c := range r.Criteria {
		kept := "yes"
		if !c.Kept {
			kept = "**no**"
		}
		fmt.Fprintf(&b, "| %s: %s | %s |\n", c.What, c, kept)
	}
	return b.String()
}

func (r *report) burstTable(b *strings.Builder) {
	if len(r.Bursts) == 0 {
		return
	}
	fmt.Fprintf(b, "%d requests at once for one prefix of %d tokens, which its home has, by `concurrencyThreshold`; a replica computes %d at once:\n\n",
		r.Bursts[0].Requests, r.Lengths[1], slots)
	b.WriteString("| threshold | requests of the replicas | warm requests | TTFT mean | P50 | P90 | failed | took |\n|---|---|---|---|---|---|---|---|\n")
	for _, burst := range r.Bursts {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %.1f s |\n", burst.Threshold, burst.requests(), percent(burst.WarmRequests), burst.columns(), burst.Seconds)
	}
	b.WriteString("\n")
}

// columns are the times and the failed requests.
func (r armReport) columns() string {
	failed := fmt.Sprint(r.failed())
	for _, reason := range slices.Sorted(maps.Keys(r.Failed)) {
		failed += fmt.Sprintf(", %d × %s", r.Failed[reason], reason)
	}
	return fmt.Sprintf("%.0f | %.0f | %.0f | %s", r.TTFT.Mean, r.TTFT.P50, r.TTFT.P90, failed)
}

// spread is "40 (12), 40 (11), 40 (12)".
func (r armReport) spread() string {
	return r.each(func(s share) string { return fmt.Sprintf("%d (%d)", s.Requests, s.Prefixes) })
}

func (r armReport) requests() string {
	return r.each(func(s share) string { return fmt.Sprint(s.Requests) })
}

func (r armReport) each(text func(share) string) string {
	texts := make([]string, len(r.Shares))
	for i, s := range r.Shares {
		texts[i] = text(s)
	}
	return strings.Join(texts, ", ")
}

func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }
