package load

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Requests begin, say what they bring, once, again or never, move and end, in any order:
// each endpoint has what those that run there bring, and nothing at rest.
func TestBroughtFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counters [3]Counter
		type held struct {
			at           int
			prompt, cold int64
			slot         Reservation
		}
		var requests []*held
		pick := func(t *rapid.T) *held {
			if len(requests) == 0 {
				t.Skip("there was no request yet")
			}
			return rapid.SampledFrom(requests).Draw(t, "request")
		}
		endpoint := rapid.IntRange(0, len(counters)-1)
		check := func(t *rapid.T) {
			var prompts, colds [3]int64
			for _, r := range requests {
				if r.slot.Held() {
					prompts[r.at] += r.prompt
					colds[r.at] += r.cold
				}
			}
			for i := range counters {
				if prompt, cold := counters[i].Brought(); prompt != prompts[i] || cold != colds[i] {
					t.Fatalf("endpoint %d: %d characters, %d cold, truth %d and %d", i, prompt, cold, prompts[i], colds[i])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				r := &held{at: endpoint.Draw(t, "endpoint")}
				r.slot, _ = counters[r.at].Take()
				requests = append(requests, r)
			},
			"bring": func(t *rapid.T) { // an ended one too, which does nothing
				r := pick(t)
				prompt, cold := rapid.Int64Range(-10, 1<<40).Draw(t, "prompt"), rapid.Int64Range(-10, 1<<40).Draw(t, "cold")
				r.slot.Bring(prompt, cold)
				r.prompt, r.cold = max(prompt, 0), max(cold, 0)
			},
			"move": func(t *rapid.T) {
				r := pick(t)
				to := endpoint.Draw(t, "endpoint")
				r.slot.Move(&counters[to])
				r.at = to
			},
			"end": func(t *rapid.T) { pick(t).slot.Release() }, // some twice
			"":    check,
		})
		for _, r := range requests {
			r.slot.Release()
		}
		check(t)
	})
}

// Who looks while requests come, move and go never sees less than nothing.
func TestBroughtIsNeverNegative(t *testing.T) {
	var a, b Counter
	done := make(chan struct{})
	var watch, run sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, c := range []*Counter{&a, &b} {
				if prompt, cold := c.Brought(); prompt < 0 || cold < 0 {
					t.Errorf("%d characters, %d cold", prompt, cold)
					return
				}
			}
		}
	})
	for range 4 {
		run.Go(func() {
			for i := range int64(5000) {
				slot, _ := a.Take()
				slot.Bring(2+i%7, 1+i%3)
				slot.Bring(i%5, i%2)
				slot.Move(&b)
				slot.Release()
			}
		})
	}
	run.Wait()
	close(done)
	watch.Wait()
	for _, c := range []*Counter{&a, &b} {
		if prompt, cold := c.Brought(); prompt != 0 || cold != 0 || c.Outstanding() != 0 {
			t.Errorf("at rest: %d characters, %d cold", prompt, cold)
		}
	}
}

func TestBringAllocatesNothing(t *testing.T) {
	var a, b Counter
	if n := testing.AllocsPerRun(100, func() {
		r, _ := a.Take()
		r.Bring(4096, 256)
		r.Move(&b)
		r.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
