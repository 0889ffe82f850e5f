package browser

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// work is what a page's main thread did: the processor time of its tasks, which other
// programs on the machine do not lengthen, in seconds, and that of the longest. parts
// are the longest times of each kind of work in the tasks.
type work struct {
	sum, longest float64
	parts        map[string]float64
}

// traceEvent is what is needed of an event in Chromium's trace format.
type traceEvent struct {
	Name     string
	Phase    string  `json:"ph"`
	Process  int     `json:"pid"`
	Thread   int     `json:"tid"`
	CPU      float64 `json:"tdur"` // microseconds
	Metadata struct {
		Name string
	} `json:"args"`
}

// workDuring measures the page's main thread while do runs.
func workDuring(t *testing.T, ctx context.Context, do func()) work {
	t.Helper()
	var events []traceEvent
	done := make(chan struct{})
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, text := range e.Value {
				var one traceEvent
				if json.Unmarshal(text, &one) == nil {
					events = append(events, one)
				}
			}
		case *tracing.EventTracingComplete:
			close(done)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		IncludedCategories: []string{"toplevel", "devtools.timeline", "v8"}, ExcludedCategories: []string{"*"},
	}}); err != nil {
		t.Fatal(err)
	}
	do()
	if _, err := chromedp.Call(ctx, tracing.End, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the trace did not come")
	}
	return busiest(events)
}

// busiest is the work of the main thread that had most: the page's.
func busiest(events []traceEvent) (most work) {
	type thread struct{ process, thread int }
	main := make(map[thread]*work)
	for _, e := range events {
		if e.Name == "thread_name" && e.Metadata.Name == "CrRendererMain" {
			main[thread{e.Process, e.Thread}] = &work{parts: make(map[string]float64)}
		}
	}
	for _, e := range events {
		w := main[thread{e.Process, e.Thread}]
		switch {
		case w == nil || e.Phase != "X":
		case e.Name == "ThreadControllerImpl::RunTask":
			w.sum += e.CPU / 1e6
			w.longest = max(w.longest, e.CPU/1e6)
		case e.CPU > 5000:
			w.parts[e.Name] = max(w.parts[e.Name], e.CPU/1e6)
		}
	}
	for _, w := range main {
		if w.sum > most.sum {
			most = *w
		}
	}
	return most
}
