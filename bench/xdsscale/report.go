package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome.
type report struct {
	Machine record.Machine `json:"machine"`
	Planes  []planeRow     `json:"control_plane"`
	Tables  []tableRow     `json:"router"`
}

// markdown renders a report for people.
func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.Machine.Lines() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n| endpoints | Envoys | first, ms | changes of wanted | `Publish` P50, ms | all Envoys have it, P50 and most, ms | CPU a change, ms | sent to an Envoy a change, KiB | live heap, MiB |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range r.Planes {
		fmt.Fprintf(&b, "| %d | %d | %.1f | %d of %d | %.2f | %.1f, %.1f | %.1f | %.1f | %.1f |\n", p.Endpoints, p.Clients, ms(p.First), p.Changes, p.Wanted,
			ms(middle(p.Publish)), ms(middle(p.Propagation)), ms(last(p.Propagation)), ms(p.CPU), float64(p.Bytes)/(1<<10), float64(p.Heap)/(1<<20))
	}
	b.WriteString("\n| endpoints | a new table P50 and most, ms | allocations | allocated, KiB | a decision with `auto`, µs | with 4,096, µs |\n|---|---|---|---|---|---|\n")
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "| %d | %.3f, %.3f | %d | %.0f | %.1f | %.1f |\n", t.Endpoints, ms(middle(t.Table)), ms(last(t.Table)),
			t.Allocations, float64(t.Bytes)/(1<<10), 1000*ms(t.Auto), 1000*ms(t.Fixed))
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// middle and last are of sorted times; 0 of none.
func middle(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[len(times)/2]
}

func last(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[len(times)-1]
}
