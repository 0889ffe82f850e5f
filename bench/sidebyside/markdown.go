package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown renders a report for people.
func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("# warmpath beside Envoy alone and a no-op\n\n")
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	fmt.Fprintf(&b, "- %d rounds of all cases and arms, the arms in a random order; %d requests one at a time, then %d at once\n\n",
		r.Rounds, r.Requests, connections)
	b.WriteString("Times in µs, the median of the rounds (smallest..largest), the P99.9 of all requests. " +
		"\"Added\" is over " + baseline + " in the same round. CPU is the processor time of a request at saturation; " +
		"the client's includes the model servers', which do nothing.\n")
	for _, c := range r.Cases {
		c.write(&b)
	}
	if len(r.Criteria) > 0 {
		writeCriteria(&b, r.Criteria)
	}
	return b.String()
}

func (c caseReport) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %v\n\n", c.testCase)
	b.WriteString("| arm | P50 | P90 | P99 | P99.9 | added P50 | added P99 | requests/s | CPU Envoy | CPU router | CPU client |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, a := range c.Arms {
		fmt.Fprintf(b, "| %s | %v | %v | %v | %.0f | %v | %v | %v | %.0f | %.0f | %.0f |\n", a.Name, a.P50, a.P90, a.P99, a.P999,
			a.AddedP50, a.AddedP99, a.Throughput, a.Envoy.Median, a.Router.Median, a.Client.Median)
	}
	for _, a := range c.Arms {
		for _, reason := range slices.Sorted(maps.Keys(a.Failed)) {
			fmt.Fprintf(b, "\n%s: %d of %d requests failed: %s.\n", a.Name, a.Failed[reason], a.Sent, reason)
		}
	}
}

// writeCriteria writes a table for each arm: a row for each criterion, a column
// for each case.
func writeCriteria(b *strings.Builder, all []criterion) {
	b.WriteString("\n## Against the no-op in the same mode\n\nWhat misses its bound is bold. " +
		"The difference is that of the P50s; it may grow with the body by what reading takes at 1.5 GB/s.\n")
	for _, arm := range distinct(all, func(k criterion) string { return k.Arm }) {
		of := slices.Clone(all)
		of = slices.DeleteFunc(of, func(k criterion) bool { return k.Arm != arm })
		cases := distinct(of, func(k criterion) string { return k.Case })
		fmt.Fprintf(b, "\n| %s | %s |\n|---|%s\n", arm, strings.Join(cases, " | "), strings.Repeat("---|", len(cases)))
		for _, what := range distinct(of, func(k criterion) string { return k.What }) {
			fmt.Fprintf(b, "| %s |", what)
			for _, c := range cases {
				cell := ""
				for _, k := range of {
					if k.What == what && k.Case == c {
						cell = k.String()
					}
				}
				fmt.Fprintf(b, " %s |", cell)
			}
			b.WriteString("\n")
		}
	}
}

// String is the value with its bound, bold where it is missed.
func (k criterion) String() string {
	format, sign, mark := "%.2f%s (%s %.2f)", "≤", ""
	if k.Unit == "µs" {
		format = "%.0f %s (%s %.0f)"
	}
	if k.AtLeast {
		sign = "≥"
	}
	if !k.Kept {
		mark = "**"
	}
	return mark + fmt.Sprintf(format, k.Value, k.Unit, sign, k.Bound) + mark
}

// distinct returns the names in the order in which they first occur.
func distinct(all []criterion, name func(criterion) string) (names []string) {
	for _, k := range all {
		if n := name(k); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
