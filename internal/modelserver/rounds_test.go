package modelserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// members returns a set of the endpoints from to to-1 by number.
func members(from, to int, more ...string) fleet.Set {
	var list []fleet.Endpoint
	for i := from; i < to; i++ {
		list = append(list, fleet.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250), Weight: 1})
	}
	for _, address := range more {
		list = append(list, fleet.Endpoint{Address: address, Weight: 1})
	}
	set, _ := fleet.NewSet(list)
	return set
}

// silence is an ask to which nobody answers but those named.
type silence struct {
	talk      []string
	mu        sync.Mutex
	asked     map[string]int
	now, most atomic.Int64
}

func (s *silence) ask(ctx context.Context, address string) {
	s.mu.Lock()
	s.asked[address]++
	s.mu.Unlock()
	if slices.Contains(s.talk, address) {
		return
	}
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	select {
	case <-time.After(timeout):
	case <-ctx.Done():
	}
}

func (s *silence) times(address string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[address]
}

func (s *silence) all() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// A thousand silent endpoints are asked by and by, and who is new is asked at once, while
// they are.
func TestSilentEndpointsHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silence{asked: make(map[string]int), talk: []string{"10.9.0.1:80", "10.9.0.2:80"}}
		r := newRounds(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.run(ctx, s.ask, func(fleet.Set, bool) {}) })
		defer wg.Wait()
		defer cancel()
		r.set(members(0, 1000))
		began := time.Now()
		for s.all() < 1000 {
			wait(time.Second)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("all were asked after %v, want a minute at most", took)
		}
		wait(2 * time.Minute) // those that come back have their turn now
		for _, address := range s.talk {
			r.set(members(0, 1000, address))
			synctest.Wait()
			if n := s.times(address); n != 1 {
				t.Errorf("a new endpoint was asked %d times at once", n)
			}
		}
		if most := s.most.Load(); most < concurrency || most > concurrency+forFresh {
			t.Errorf("%d are asked at once, want %d to %d", most, concurrency, concurrency+forFresh)
		}
		wait(5 * time.Minute) // more than two rounds of 80 seconds
		for _, e := range members(0, 1000).Endpoints() {
			if n := s.times(e.Address); n < 4 || n > 8 {
				t.Fatalf("%s was asked %d times", e.Address, n)
			}
		}
	})
}

// wait lets time pass; all is done that is to be done until then.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// An endpoint has no longer than an interval, and no longer than timeout.
func TestTimeout(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{time.Second: time.Second, timeout: timeout, time.Hour: timeout} {
		if got := newRounds(interval).client.Timeout; got != want {
			t.Errorf("interval %v: a timeout of %v, want %v", interval, got, want)
		}
	}
}

func TestQueue(t *testing.T) {
	var q queue
	take := func(onlyFresh bool) (all []string) {
		for {
			address, ok := q.next(onlyFresh)
			if !ok {
				return all
			}
			all = append(all, address)
		}
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	q.round()
	expect("nobody", take(false))
	q.replace(members(0, 0, "a", "b"))
	q.round()
	expect("new", take(true), "a", "b")
	q.round()
	expect("while they are asked", take(false))
	q.answered("a")
	q.answered("b")
	expect("before the next round", take(false))
	q.round()
	q.round()
	q.replace(members(0, 0, "a", "b", "z"))
	expect("a new one first", take(true), "z")
	q.replace(members(0, 0, "b", "z"))
	expect("who has left is not asked", take(false), "b")
	q.replace(members(0, 0, "a", "b", "z"))
	expect("who comes back is new", take(false), "a")
	q.answered("z")
	q.answered("gone")
	q.round()
	changed, _ := fleet.NewSet([]fleet.Endpoint{{Address: "a", Weight: 2}, {Address: "b", Weight: 1}, {Address: "z", Weight: 1}})
	q.replace(changed)
	expect("who has changed is new", take(true), "a")
	q.answered("b")
	q.round()
	expect("who waits keeps its place", take(false), "z", "b")
}

// A fleet that answers is one change; one that is silent beside it does not hold it up.
func TestListerTellsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		l := NewLister(time.Minute, func(m map[string]fleet.Names) { told = append(told, len(m)) })
		set := members(0, 50)
		at := time.Now()
		for i, e := range set.Endpoints() {
			l.mu.Lock()
			l.known[e.Address], l.untold = "", true
			l.mu.Unlock()
			l.tell(set, i == 49)
		}
		if !slices.Equal(told, []int{1, 50}) {
			t.Errorf("told of %v, want the first and then all", told)
		}
		told = nil
		wait(gather)
		l.tell(members(0, 49), false)
		l.tell(members(0, 48), false)
		wait(gather)
		l.tell(members(0, 48), false)
		l.tell(members(0, 48), true)
		if !slices.Equal(told, []int{49, 48}) || time.Since(at) != 2*gather {
			t.Errorf("told of %v", told)
		}
	})
}
