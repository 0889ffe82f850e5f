package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/bench/record"
)

// row is what a scenario came to.
type row struct {
	Scenario string `json:"scenario"`
	Rounds   int    `json:"rounds"`
	Requests int    `json:"requests"`
	// Failed ended otherwise than they should, and no rule excuses them.
	Failed int `json:"failed"`
	// Altered came to a replica otherwise than they were sent, or more often than
	// they may, or were answered by one that never had them.
	Altered int `json:"altered"`
	// Misrouted were served elsewhere than decided.
	Misrouted int `json:"misrouted"`
	// Over began at a replica that was at its bound.
	Over int `json:"over_the_bound"`
	// Leaked is how many checks of what is left behind failed.
	Leaked int `json:"leaked"`
	// ByEnvoy were sent on by Envoy's own choice, Excused ended badly as the
	// scenario's rule says.
	ByEnvoy int            `json:"by_envoy"`
	Excused map[string]int `json:"excused,omitempty"`
	// Notes say what was wrong, the first of each kind.
	Notes map[string]int `json:"notes,omitempty"`
	// Error is why a scenario could not be played to its end.
	Error string `json:"error,omitempty"`
}

// maxNotes bounds the kinds of notes of a scenario.
const maxNotes = 40

func newRow(name string) row {
	return row{Scenario: name, Rounds: 1, Excused: make(map[string]int), Notes: make(map[string]int)}
}

// note keeps what was wrong.
func (r *row) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, known := r.Notes[text]; known || len(r.Notes) < maxNotes {
		r.Notes[text]++
	}
}

// add takes another round's row in.
func (r *row) add(o row) {
	r.Rounds += o.Rounds
	r.Requests += o.Requests
	r.Failed += o.Failed
	r.Altered += o.Altered
	r.Misrouted += o.Misrouted
	r.Over += o.Over
	r.Leaked += o.Leaked
	r.ByEnvoy += o.ByEnvoy
	for why, n := range o.Excused {
		r.Excused[why] += n
	}
	for text, n := range o.Notes {
		if _, known := r.Notes[text]; known || len(r.Notes) < maxNotes {
			r.Notes[text] += n
		}
	}
	if r.Error == "" {
		r.Error = o.Error
	}
}

// wrong is how much should be zero and is not.
func (r *row) wrong() int {
	n := r.Failed + r.Altered + r.Misrouted + r.Over + r.Leaked
	if r.Error != "" {
		n++
	}
	return n
}

func (r *row) excused() (n int) {
	for _, of := range r.Excused {
		n += of
	}
	return n
}

// report is the outcome.
type report struct {
	Machine record.Machine `json:"machine"`
	Seconds float64        `json:"seconds"`
	Rows    []row          `json:"scenarios"`
	// Samples and Trends are those of a soak.
	Samples []sample `json:"samples,omitempty"`
	Trends  []trend  `json:"trends,omitempty"`
}

// err says how much was wrong, nil if nothing was.
func (r *report) err() error {
	var wrong []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.wrong() > 0 {
			wrong = append(wrong, fmt.Sprintf("%s (%d)", row.Scenario, row.wrong()))
		}
	}
	for _, t := range r.Trends {
		if t.Grows {
			wrong = append(wrong, t.Name+" grows")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not as it should be: %s", strings.Join(wrong, ", "))
	}
	return nil
}

// markdown renders a report for people.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Faults\n\n")
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	total := newRow("all")
	total.Rounds = 0
	for _, row := range r.Rows {
		total.add(row)
	}
	fmt.Fprintf(&b, "- %d requests in %.0f s, %d scenarios\n\n", total.Requests, r.Seconds, len(r.Rows))
	b.WriteString("| scenario | rounds | requests | failed | altered | mis-routed | over the bound | leaked | by Envoy's choice | ended by the fault |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range append(slices.Clone(r.Rows), total) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", row.Scenario, row.Rounds, row.Requests,
			row.Failed, row.Altered, row.Misrouted, row.Over, row.Leaked, row.ByEnvoy, row.excused())
	}
	r.details(&b)
	r.soaked(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// details lists what ended by a fault, and what was wrong.
func (r *report) details(b *strings.Builder) {
	for _, row := range r.Rows {
		for _, why := range slices.Sorted(maps.Keys(row.Excused)) {
			fmt.Fprintf(b, "\n- %s: %d, %s", row.Scenario, row.Excused[why], why)
		}
	}
	b.WriteString("\n")
	for _, row := range r.Rows {
		for _, text := range slices.Sorted(maps.Keys(row.Notes)) {
			fmt.Fprintf(b, "\n- WRONG, %s: %s (%d times)", row.Scenario, text, row.Notes[text])
		}
		if row.Error != "" {
			fmt.Fprintf(b, "\n- WRONG, %s: %s", row.Scenario, row.Error)
		}
	}
}
