package load

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// Exactly as many slots as the bound are given, one at a time, and one more for
// each that comes back.
func TestReserveGivesExactlyTheBound(t *testing.T) {
	for _, bound := range []int64{0, 1, 2, 6, 1024} {
		var c Counter
		held := make([]Reservation, bound)
		for i := range held {
			r, seen, ok := c.Reserve(bound)
			if !ok || seen != int64(i) || !r.Held() {
				t.Fatalf("bound %d, %d outstanding: saw %d, reserved %v", bound, i, seen, ok)
			}
			held[i] = r
		}
		full := func(when string) {
			t.Helper()
			if r, seen, ok := c.Reserve(bound); ok || seen != bound || r.Held() || c.Outstanding() != bound {
				t.Errorf("bound %d, %s: saw %d, reserved %v, %d outstanding", bound, when, seen, ok, c.Outstanding())
			}
		}
		full("full")
		if bound == 0 {
			continue
		}
		held[0].Release()
		if r, seen, ok := c.Reserve(bound); !ok || seen != bound-1 || !r.Held() {
			t.Errorf("bound %d, one came back: saw %d, reserved %v", bound, seen, ok)
		}
		full("full again")
	}
}

// Of many that come at once and hold what they get, as many get a slot as there
// are.
func TestReserveAtOnceGivesExactlyTheBound(t *testing.T) {
	const bound, all = 8, 200
	var c Counter
	var given atomic.Int64
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(all)
	for range all {
		done.Go(func() {
			ready.Done()
			<-begin
			if _, _, ok := c.Reserve(bound); ok {
				given.Add(1)
			}
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
	if given.Load() != bound || c.Outstanding() != bound {
		t.Errorf("%d of %d got a slot, %d outstanding, want %d", given.Load(), all, c.Outstanding(), bound)
	}
}

// Taking a slot whatever the load tells how many there were, and a bound below that
// gives none.
func TestTakeCountsOn(t *testing.T) {
	var c Counter
	for want := range int64(5) {
		if _, seen := c.Take(); seen != want {
			t.Errorf("saw %d outstanding, want %d", seen, want)
		}
	}
	if _, seen, ok := c.Reserve(3); ok || seen != 5 {
		t.Errorf("above the bound: saw %d, reserved %v", seen, ok)
	}
}

// A counter is forgotten when it was idle and not named in as many calls as are
// graced, not one earlier; being named begins the count anew.
func TestRetainForgetsAfterTheGrace(t *testing.T) {
	nobody := func(string) bool { return false }
	tracker := NewTracker()
	tracker.Counter("10.0.0.1:80")
	for i := range graceRetentions - 1 {
		if tracker.Retain(tracker, nobody); len(tracker.Snapshot()) != 1 {
			t.Fatalf("forgotten after %d of %d calls", i+1, graceRetentions)
		}
	}
	tracker.Retain(tracker, func(string) bool { return true })
	for i := range graceRetentions - 1 {
		if tracker.Retain(tracker, nobody); len(tracker.Snapshot()) != 1 {
			t.Fatalf("forgotten after %d of %d calls since it was named", i+1, graceRetentions)
		}
	}
	if tracker.Retain(tracker, nobody); len(tracker.Snapshot()) != 0 {
		t.Errorf("kept after %d calls", graceRetentions)
	}
}

// The picture of all loads is in the order of the addresses.
func TestSnapshotIsInOrder(t *testing.T) {
	tracker := NewTracker()
	for _, i := range []int{3, 1, 4, 2, 0} {
		tracker.Counter(fmt.Sprintf("10.0.0.%d:80", i))
	}
	for i, c := range tracker.Snapshot() {
		if want := fmt.Sprintf("10.0.0.%d:80", i); c.Address != want {
			t.Errorf("%d is %s, want %s", i, c.Address, want)
		}
	}
}
