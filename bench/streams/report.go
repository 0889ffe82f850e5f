package main

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome.
type report struct {
	Machine record.Machine `json:"machine"`
	Seconds float64        `json:"seconds"`
	Open    []openRow      `json:"open,omitempty"`
	Storms  []stormRow     `json:"storms,omitempty"`
	// AfterStorms says what warmpath had before and after them.
	AfterStorms string       `json:"after_storms,omitempty"`
	Overload    *overloadRow `json:"overload,omitempty"`
	Idle        []idleRow    `json:"idle,omitempty"`
	Tables      []tableRow   `json:"tables,omitempty"`
	// Wrong is what is not as it should be.
	Wrong []string `json:"wrong,omitempty"`
}

func (r *report) wrong(format string, args ...any) {
	r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
}

// err says how much was wrong, nil if nothing was.
func (r *report) err() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return fmt.Errorf("not as it should be: %s", strings.Join(r.Wrong, "; "))
}

// markdown renders a report for people.
func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	fmt.Fprintf(&b, "- %.0f s\n", r.Seconds)
	r.openTable(&b)
	r.stormTable(&b)
	r.overloadTable(&b)
	r.idleTable(&b)
	r.tableTable(&b)
	for _, w := range r.Wrong {
		fmt.Fprintf(&b, "\n- WRONG: %s", w)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *report) openTable(b *strings.Builder) {
	if len(r.Open) == 0 {
		return
	}
	b.WriteString("\n| bodies | traced | open | decided and counted | alive, KiB a stream | of it stacks | resident, KiB a stream | goroutines a stream | resident before, open, after, MiB | live heap before, open, after, MiB |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Open {
		o := &r.Open[i]
		fmt.Fprintf(b, "| %d KiB | %v | %d | %d | %.1f | %.1f | %.1f | %.2f | %.0f, %.0f, %.0f | %.1f, %.1f, %.1f |\n", o.Bytes>>10, o.Traced, o.Streams, o.Counted,
			o.live()/1024, o.stack()/1024, o.resident()/1024, o.perStream(o.Before.Goroutines, o.Open.Goroutines),
			mebibytes(o.Before.Resident), mebibytes(o.Open.Resident), mebibytes(o.After.Resident), mebibytes(o.Before.Live-ballast), mebibytes(o.Open.Live-ballast), mebibytes(o.After.Live-ballast))
	}
}

// ballast is what warmpath's garbage collector takes for alive and is not there:
// see cmd/warmpath.
const ballast = 64 << 20
