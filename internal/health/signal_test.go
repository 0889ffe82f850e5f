package health

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestSignalOf(t *testing.T) {
	for _, tc := range []struct {
		status int
		want   Signal
		says   bool
	}{
		{200, Answered, true},
		{206, Answered, true},
		{304, Answered, true},
		{100, Answered, false},
		{400, Answered, false},
		{429, Answered, false},
		{499, Answered, false},
		{500, Answered, false},
		{501, Answered, false},
		{502, ServerError, true},
		{503, ServerError, true},
		{504, ServerError, true},
		{505, Answered, false},
		{0, Answered, false},
	} {
		if got, says := SignalOf(tc.status); got != tc.want || says != tc.says {
			t.Errorf("status %d: %v, %v; want %v, %v", tc.status, got, says, tc.want, tc.says)
		}
	}
}

// The counter tells the same as the list of signals between two readings.
func TestCounterAgainstTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Counter
		var since Reading
		run, total := 0, 0 // failures since the last success; of them new ones
		succeeded := false
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			switch s := Signal(rapid.IntRange(0, 4).Draw(t, "signal")); s {
			case 4:
				var o Outcome
				o, since = c.Read(since)
				if o.Succeeded != succeeded || o.Failures != total {
					t.Fatalf("read %+v, want %v and %d", o, succeeded, total)
				}
				total, succeeded = 0, false
			case Answered:
				c.Report(s)
				succeeded = succeeded || run > 0
				run, total = 0, 0
			default:
				c.Report(s)
				run++
				total++
				if o, _ := c.Read(since); o.Last != s {
					t.Fatalf("last %v, want %v", o.Last, s)
				}
			}
		}
	})
}

func TestCounterLosesNoFailure(t *testing.T) {
	var c Counter
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c.Report(Unreachable)
			}
		})
	}
	seen, since := 0, Reading(0)
	var o Outcome
	for range 100 {
		o, since = c.Read(since)
		seen += o.Failures
	}
	wg.Wait()
	if o, _ = c.Read(since); seen+o.Failures != 8000 {
		t.Errorf("%d failures seen, want 8000", seen+o.Failures)
	}
}

func TestReportDoesNotAllocate(t *testing.T) {
	var c Counter
	if n := testing.AllocsPerRun(1000, func() { c.Report(Answered); c.Report(Unreachable) }); n != 0 {
		t.Errorf("%v allocations a report", n)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Unreachable.String(): "unreachable", Signal(9).String(): "signal(9)",
		Starting.String(): "starting", State(9).String(): "state(9)",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
