package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	busyEndpoints = 500
	watched       = 8 * time.Second
	// longestTask is how long the page may not answer, mostBusy the part of the time.
	longestTask = 100.0 // ms
	mostBusy    = 0.5
)

// With 500 endpoints and ten updates a second the page stays responsive, and nothing
// moves by itself.
func TestBusyFleet(t *testing.T) {
	s := newSite(t, busyEndpoints, auto())
	s.past(5, 1000)
	s.traffic(t, 1000)
	ctx := tab(t, 1280, 900)
	open(t, ctx, s)
	run(t, ctx, chromedp.SetValue("#interval", "100ms"), dispatch("#interval", "change"))
	until(t, ctx, `document.querySelectorAll("#fleet tbody tr").length === 500 && document.querySelectorAll("#last tbody tr").length > 49`)
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`
		window.tasks = [];
		window.shift = 0;
		window.draws = 0;
		new PerformanceObserver((l) => l.getEntries().forEach((e) => tasks.push(e.duration))).observe({ type: "longtask" });
		new PerformanceObserver((l) => l.getEntries().forEach((e) => { shift += e.value; })).observe({ type: "layout-shift" });
		new MutationObserver(() => { draws++; }).observe(document.getElementById("fleet"), { subtree: true, childList: true, characterData: true });
		void 0`))
	at := time.Now()
	done := workDuring(t, ctx, func() {
		timer := time.NewTimer(watched)
		defer timer.Stop()
		<-timer.C
	})
	busy, longest := done.sum/time.Since(at).Seconds(), 1000*done.longest
	if done.sum == 0 {
		t.Fatal("the trace has no task of the page")
	}
	draws, shift := value[int](t, ctx, `draws`), value[float64](t, ctx, `shift`)
	byClock := value[float64](t, ctx, `Math.max(0, ...tasks)`)
	t.Logf("%d endpoints, %d updates in %v: main thread busy %.0f %%, longest task %.0f ms (%.0f ms by the clock), layout shift %.3f, longest parts in s: %v",
		busyEndpoints, draws, watched, 100*busy, longest, byClock, shift, done.parts)
	if longest > longestTask {
		t.Errorf("a task of %.0f ms, want at most %.0f", longest, longestTask)
	}
	if busy > mostBusy {
		t.Errorf("the main thread is busy %.0f %% of the time, want at most %.0f", 100*busy, 100*mostBusy)
	}
	if least := int(watched/(100*time.Millisecond)) / 4; draws < least {
		t.Errorf("%d updates in %v, want at least %d", draws, watched, least)
	}
	if shift > 0.02 {
		t.Errorf("the layout shifted by %.3f", shift)
	}
}
