// Package load counts the requests that are outstanding at each endpoint, from
// the moment an endpoint is chosen to the last byte of its response.
//
// Choosing and counting are one step: [Counter.Reserve] takes a slot only when
// the endpoint is below its bound, by compare-and-swap, so that any number of
// concurrent requests for one prefix never exceed it. It is pure: atomics, no
// clock and no I/O.
package load

import "sync/atomic"

// Counter is the number of outstanding requests of one endpoint. The zero
// Counter is ready to use; it must not be copied after first use.
//
// The low 32 bits hold the outstanding requests, the high 32 bits count the
// releases so far (it wraps, which is harmless). As long as no release happens
// the outstanding part only grows, so equal release counts in two readings
// prove that what was full stayed full between them: see [AllFull].
type Counter struct {
	state atomic.Uint64
	// others is what other routers have outstanding at the endpoint, as they told.
	others atomic.Int64
	// prompt and cold are what the outstanding requests bring, see [Reservation.Bring].
	prompt, cold atomic.Int64
	// Keep counters of different endpoints off one cache line: every request
	// writes its endpoint's counter twice.
	_ [32]byte
}

// release subtracts one from the low half and adds one to the high half.
const release = 1<<32 - 1

// Load returns the requests that run at the endpoint now, those of other routers
// included.
func (c *Counter) Load() int64 { return c.Outstanding() + c.others.Load() }

// SetOthers says how many requests other routers have outstanding at the endpoint.
// A negative number counts as 0.
func (c *Counter) SetOthers(n int64) { c.others.Store(max(n, 0)) }

// Outstanding returns this router's requests that run at the endpoint now. It is never
// negative: only a [Reservation] can release, and only once.
func (c *Counter) Outstanding() int64 { return outstanding(c.state.Load()) }

func outstanding(state uint64) int64 { return int64(uint32(state)) }

// Brought returns what this router's outstanding requests have brought to the endpoint:
// the characters of their prompts, and how many of these were not warm there. Neither
// is ever negative, and both are 0 when none is outstanding.
func (c *Counter) Brought() (prompt, cold int64) { return c.prompt.Load(), c.cold.Load() }

// Reserve takes a slot if fewer than bound requests are outstanding, those of other
// routers included. It reports how many there were when it decided.
func (c *Counter) Reserve(bound int64) (r Reservation, seen int64, ok bool) {
	for {
		state := c.state.Load()
		if seen = outstanding(state) + c.others.Load(); seen >= bound {
			return Reservation{}, seen, false
		}
		if c.state.CompareAndSwap(state, state+1) {
			return Reservation{counter: c}, seen, true
		}
	}
}

// Take takes a slot whatever the load. It reports how many requests were
// outstanding before.
func (c *Counter) Take() (r Reservation, seen int64) {
	return Reservation{counter: c}, outstanding(c.state.Add(1)) - 1 + c.others.Load()
}

// Reservation is one request's slot at an endpoint. It belongs to one goroutine
// and must be released exactly once; further releases do nothing. The zero
// Reservation holds no slot.
type Reservation struct {
	counter      *Counter
	prompt, cold int64
}

// Release gives the slot back, and takes away what the request has brought.
func (r *Reservation) Release() {
	if r.counter != nil {
		r.Bring(0, 0)
		r.counter.state.Add(release)
		r.counter = nil
	}
}

// Bring says how many characters the request's prompt has, and how many of them are
// cold at its endpoint, in place of what was said before. They count there until the
// slot is given back, and go along when it moves. Less than nothing counts as 0; without
// a slot it does nothing.
func (r *Reservation) Bring(prompt, cold int64) {
	if r.counter == nil {
		return
	}
	prompt, cold = max(prompt, 0), max(cold, 0)
	r.counter.prompt.Add(prompt - r.prompt)
	r.counter.cold.Add(cold - r.cold)
	r.prompt, r.cold = prompt, cold
}

// Held reports whether the slot has not been released yet.
func (r *Reservation) Held() bool { return r.counter != nil }

// Move books the request on another endpoint's counter, when Envoy was seen to
// send it there. It takes the new slot before it gives the old one back, so
// that a reader never sees the request nowhere. Moving a released reservation
// does nothing.
func (r *Reservation) Move(to *Counter) {
	if r.counter == nil || r.counter == to {
		return
	}
	next, _ := to.Take()
	next.Bring(r.prompt, r.cold)
	r.Release()
	*r = next
}

// AllFull reports whether at one instant during the call every one of the n
// counters had reached its bound. A single pass could not tell: a slot may be
// released behind the reader and another taken before it.
func AllFull(n int, at func(int) (*Counter, int64)) bool {
	before, full := collect(n, at)
	if !full {
		return false
	}
	after, full := collect(n, at)
	return full && before == after
}

// collect sums the release counts. The sum of counts that only grow is equal
// in two passes only if each of them is.
func collect(n int, at func(int) (*Counter, int64)) (releases uint64, full bool) {
	for i := range n {
		c, bound := at(i)
		state := c.state.Load()
		if outstanding(state)+c.others.Load() < bound {
			return 0, false
		}
		releases += state >> 32
	}
	return releases, true
}
