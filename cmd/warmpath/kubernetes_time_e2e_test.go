package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
)

// bound is what the way from a slice to a request may take.
const bound = 150 * time.Millisecond

// TestTimeToFirstRequest measures it with a stand-in for the API server, at 100
// endpoints. The time of a real one comes on top: make test-kubernetes.
func TestTimeToFirstRequest(t *testing.T) {
	const endpoints, samples = 100, 20
	s, c := startInStandIn(t, endpoints+1, "health: {slowStart: 0s}")
	late, body := homeless(t, s)
	pod := slices.Index(s.Replicas.Addresses(), late)
	var times []time.Duration
	for range samples {
		c.remove(pod)
		envoyHas(t, s, endpoints)
		times = append(times, firstServed(t, s, body, late, func() { c.add(pod) }))
	}
	judgeTimes(t, times)
	noMisses(t, s)
}

// judgeTimes says whether the bound holds, and fails only far beyond it: a busy
// machine is slow.
func judgeTimes(t *testing.T, times []time.Duration) {
	t.Helper()
	slices.Sort(times)
	median, last := times[len(times)/2], times[len(times)-1]
	t.Logf("from the change of the slice to the first request served: P50 %v, max %v of %d; bound %v", median, last, len(times), bound)
	if median > 10*bound {
		t.Errorf("P50 %v, want at most %v even on a busy machine", median, 10*bound)
	}
}

// homeless finds a body whose home is one of the replicas, and that replica.
func homeless(t *testing.T, s *stack.Stack) (late string, body []byte) {
	body = chat(strings.Repeat("The late one. ", 120), "q", false)
	return homesOf(t, s, "/v1/chat/completions", body)[0], body
}

// firstServed changes something and returns how long after the beginning of that a
// replica serves for the first time, to a client that asks again and again.
func firstServed(t *testing.T, s *stack.Stack, body []byte, late string, change func()) time.Duration {
	t.Helper()
	type answer struct {
		at  time.Time
		err error
	}
	first := make(chan answer, 1)
	go func() {
		for {
			replica, err := served(t.Context(), s, "/v1/chat/completions", body)
			if err != nil || replica == late {
				first <- answer{time.Now(), err}
				return
			}
		}
	}()
	began := time.Now()
	change()
	a := <-first
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.at.Sub(began)
}
