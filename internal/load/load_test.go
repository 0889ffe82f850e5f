package load

import (
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// 1,000 goroutines fight for 8 slots: never more than 8 hold one.
func TestReserveNeverExceedsTheBound(t *testing.T) {
	const bound = 8
	var c Counter
	var holders, peak atomic.Int64
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for range 100 {
				r, seen, ok := c.Reserve(bound)
				if !ok {
					continue
				}
				if seen >= bound {
					t.Errorf("reserved with %d outstanding", seen)
				}
				for h := holders.Add(1); ; {
					if p := peak.Load(); h <= p || peak.CompareAndSwap(p, h) {
						break
					}
				}
				holders.Add(-1)
				r.Release()
			}
		})
	}
	wg.Wait()
	if p := peak.Load(); p > bound || p < 1 {
		t.Errorf("peak of holders = %d, want 1..%d", p, bound)
	}
	if n := c.Outstanding(); n != 0 {
		t.Errorf("outstanding = %d at the end", n)
	}
}

func TestReleaseIsIdempotentAndMoveKeepsTheSum(t *testing.T) {
	var a, b Counter
	r, seen := a.Take()
	if seen != 0 || !r.Held() {
		t.Fatalf("take: seen %d", seen)
	}
	r.Move(&a)
	r.Move(&b)
	if a.Outstanding() != 0 || b.Outstanding() != 1 {
		t.Errorf("after the move: %d, %d", a.Outstanding(), b.Outstanding())
	}
	r.Release()
	r.Release()
	r.Move(&a)
	if a.Outstanding() != 0 || b.Outstanding() != 0 || r.Held() {
		t.Errorf("after the release: %d, %d", a.Outstanding(), b.Outstanding())
	}
	var zero Reservation
	zero.Release()
}

func TestAllFull(t *testing.T) {
	counters := make([]Counter, 3)
	at := func(i int) (*Counter, int64) { return &counters[i], 1 }
	var held []Reservation
	for i := range counters {
		if AllFull(len(counters), at) {
			t.Fatalf("all full with %d of 3 taken", i)
		}
		r, _ := counters[i].Take()
		held = append(held, r)
	}
	if !AllFull(len(counters), at) {
		t.Error("not all full with all taken")
	}
	// A slot released and another taken between two looks at a counter: each
	// look alone sees a full counter.
	reads := 0
	if AllFull(len(counters), func(i int) (*Counter, int64) {
		if reads++; reads == 2 {
			held[0].Release()
			held[0], _ = counters[0].Take()
		}
		return at(i)
	}) {
		t.Error("all full although a slot was free during the scan")
	}
}

// An endpoint is removed and comes back while requests run: counts follow a
// model that knows who holds a slot, and never go below zero.
func TestTrackerFollowsTheModel(t *testing.T) {
	addresses := []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}
	rapid.Check(t, func(t *rapid.T) {
		tracker := NewTracker()
		type held struct {
			address string
			slot    Reservation
		}
		var running []held
		truth := make(map[string]int64)
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				a := rapid.SampledFrom(addresses).Draw(t, "address")
				r, seen := tracker.Counter(a).Take()
				if seen != truth[a] {
					t.Fatalf("%s: saw %d, truth %d", a, seen, truth[a])
				}
				truth[a]++
				running = append(running, held{a, r})
			},
			"end": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing runs")
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				running[i].slot.Release()
				truth[running[i].address]--
				running = append(running[:i], running[i+1:]...)
			},
			"membership": func(t *rapid.T) {
				members := rapid.SliceOf(rapid.SampledFrom(addresses)).Draw(t, "members")
				tracker.Retain(tracker, func(a string) bool {
					for _, m := range members {
						if m == a {
							return true
						}
					}
					return false
				})
			},
			"": func(t *rapid.T) {
				for _, c := range tracker.Snapshot() {
					if c.Outstanding != truth[c.Address] {
						t.Fatalf("%s: %d outstanding, truth %d", c.Address, c.Outstanding, truth[c.Address])
					}
				}
			},
		})
	})
}

func TestRetainForgetsIdleStrangers(t *testing.T) {
	tracker := NewTracker()
	tracker.Counter("10.0.0.1:80")
	busy, _ := tracker.Counter("10.0.0.2:80").Take()
	none := func(string) bool { return false }
	for range graceRetentions {
		tracker.Retain(tracker, none)
	}
	if _, ok := tracker.Lookup("10.0.0.1:80"); ok {
		t.Error("an idle endpoint that left is still tracked")
	}
	if _, ok := tracker.Lookup("10.0.0.2:80"); !ok {
		t.Error("an endpoint with a running request was forgotten")
	}
	busy.Release()
	for range graceRetentions {
		tracker.Retain(tracker, none)
	}
	if n := len(tracker.Snapshot()); n != 0 {
		t.Errorf("%d endpoints tracked, want 0", n)
	}
}

// Other routers' requests count towards the bound, and never as one's own.
func TestOtherRouters(t *testing.T) {
	var c Counter
	c.SetOthers(2)
	if c.Load() != 2 || c.Outstanding() != 0 {
		t.Errorf("load %d, own %d; want 2, 0", c.Load(), c.Outstanding())
	}
	first, seen, ok := c.Reserve(3)
	if !ok || seen != 2 || c.Load() != 3 {
		t.Errorf("Reserve: %t, seen %d, load %d", ok, seen, c.Load())
	}
	if _, seen, ok := c.Reserve(3); ok || seen != 3 {
		t.Errorf("Reserve at the bound: %t, seen %d", ok, seen)
	}
	if !AllFull(1, func(int) (*Counter, int64) { return &c, 3 }) || AllFull(1, func(int) (*Counter, int64) { return &c, 4 }) {
		t.Error("AllFull does not count the others")
	}
	second, seen := c.Take()
	if seen != 3 || c.Outstanding() != 2 {
		t.Errorf("Take: seen %d, own %d", seen, c.Outstanding())
	}
	c.SetOthers(-1)
	first.Release()
	second.Release()
	if c.Load() != 0 {
		t.Errorf("load %d at rest", c.Load())
	}
}

// What one membership has is kept, whatever another lacks.
func TestRetainOfSeveralMemberships(t *testing.T) {
	tracker := NewTracker()
	tracker.Counter("10.0.0.1:80")
	first, second := new(int), new(int)
	tracker.Retain(first, func(a string) bool { return a == "10.0.0.1:80" })
	none := func(string) bool { return false }
	for range 2 * graceRetentions {
		tracker.Retain(second, none)
	}
	if _, ok := tracker.Lookup("10.0.0.1:80"); !ok {
		t.Error("the member of one membership was forgotten for another")
	}
	for range graceRetentions {
		tracker.Retain(first, none)
	}
	if _, ok := tracker.Lookup("10.0.0.1:80"); ok {
		t.Error("an endpoint that no membership has is still tracked")
	}
}

// The grace of an endpoint that has left a membership is over after changes of that
// one, however often others change.
func TestGraceIsThatOfTheOwnMembership(t *testing.T) {
	tracker := NewTracker()
	tracker.Counter("10.0.0.1:80")
	own, other := new(int), new(int)
	none := func(string) bool { return false }
	tracker.Retain(own, func(string) bool { return true })
	tracker.Retain(other, none)
	for range graceRetentions - 1 {
		tracker.Retain(own, none)
		for range 3 * graceRetentions {
			tracker.Retain(other, none)
		}
		if _, ok := tracker.Lookup("10.0.0.1:80"); !ok {
			t.Fatal("forgotten by changes of another membership")
		}
	}
	tracker.Retain(own, none)
	if _, ok := tracker.Lookup("10.0.0.1:80"); ok {
		t.Error("not forgotten after the grace")
	}
}

func TestReserveAllocatesNothing(t *testing.T) {
	var c Counter
	if n := testing.AllocsPerRun(100, func() {
		r, _, _ := c.Reserve(4)
		r.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
