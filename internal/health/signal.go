package health

import (
	"fmt"
	"sync/atomic"
)

// Signal is what one request tells about an endpoint.
type Signal uint8

// The signals. All but Answered are failures.
const (
	// Answered means that the endpoint answered a request well.
	Answered Signal = iota
	// ServerError means that it answered with a status that counts as a failure.
	ServerError
	// Unreachable means that a connection to it failed or was reset before the
	// response, so that Envoy tried another endpoint.
	Unreachable
)

var signalNames = [...]string{
	Answered: "answered", ServerError: "server error", Unreachable: "unreachable",
}

// String returns the signal in words.
func (s Signal) String() string {
	if int(s) < len(signalNames) {
		return signalNames[s]
	}
	return fmt.Sprintf("signal(%d)", uint8(s))
}

// SignalOf returns what the status of an endpoint's response tells, and false
// when it tells nothing: a refusal (4xx) shows neither that the endpoint can
// serve nor that it cannot, and so does a 500, which engines also give for one
// request that they cannot digest.
func SignalOf(status int) (Signal, bool) {
	switch {
	case status >= 200 && status < 400:
		return Answered, true
	case status == 502, status == 503, status == 504:
		return ServerError, true
	default:
		return Answered, false
	}
}

// Counter collects the signals of one endpoint between two readings. Any number
// of goroutines may report; a report takes no lock, and that of a success
// writes nothing while there is no failure to end. The zero value is ready.
type Counter struct {
	// word holds the failures since the last success in its low half, and in
	// its high half how many successes have ended a run of failures.
	word atomic.Uint64
	last atomic.Uint32
}

// Report adds a signal.
func (c *Counter) Report(s Signal) {
	if s != Answered {
		c.last.Store(uint32(s))
		c.word.Add(1)
		return
	}
	for {
		w := c.word.Load()
		if uint32(w) == 0 || c.word.CompareAndSwap(w, (w>>32+1)<<32) {
			return
		}
	}
}

// Reading is a position in a counter; the zero Reading is its beginning.
type Reading uint64

// Outcome is what was reported between two readings.
type Outcome struct {
	// Succeeded says that a success ended a run of failures; Failures are those
	// after it.
	Succeeded bool
	Failures  int
	// Last is the kind of the last failure.
	Last Signal
}

// Read returns what was reported since an earlier reading, and the new reading.
// One goroutine reads.
func (c *Counter) Read(since Reading) (Outcome, Reading) {
	now := Reading(c.word.Load())
	o := Outcome{Succeeded: now>>32 != since>>32, Failures: int(uint32(now)), Last: Signal(c.last.Load())}
	if !o.Succeeded {
		o.Failures -= int(uint32(since))
	}
	return o, now
}
