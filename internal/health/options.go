// Package health judges which endpoints may be given requests, from the results
// of probes and from how the requests themselves fare.
//
// It is pure: a [Machine] is told what happened and when, and a [View] is what
// it makes of it. The probes are sent by package prober.
//
// It exists because Envoy sends a request to the host that the router names
// whatever Envoy knows of that host's health: an override ignores EDS health,
// active health checks and outlier ejection. So the router has to know, and
// Envoy is told, for its own fallback.
package health

import (
	"errors"
	"fmt"
	"time"
)

// Options say when an endpoint changes its state. [Defaults] are sensible.
type Options struct {
	// Probing says that probe results come in. Without it an endpoint counts as
	// healthy from the beginning, and an ejected one comes back by time alone.
	Probing bool
	// FailedProbes in a row make an endpoint unhealthy: 1 to 100.
	FailedProbes int
	// GoodProbes in a row make it healthy again: 1 to 100. A new endpoint needs
	// one only, for there is no failure yet that might repeat.
	GoodProbes int
	// Failures of requests within Window, with no success between them, eject
	// an endpoint: 1 to 100, 0 means never.
	Failures int
	Window   time.Duration
	// MaxEjected is the share of the endpoints, 0 to 1, that failed requests
	// alone may eject. When requests fail everywhere they are more likely bad
	// requests than bad endpoints.
	MaxEjected float64
	// MinBackoff and MaxBackoff bound how long an ejection lasts at least. It
	// doubles with every ejection that follows within MaxBackoff of the return.
	// The first one with probes has no such time: good probes end it.
	MinBackoff, MaxBackoff time.Duration
	// SlowStart is how long the weight of an endpoint rises that is new or has
	// come back, from MinFraction of it; 0 means that it has all at once.
	SlowStart   time.Duration
	MinFraction float64 // 0.01 to 1
	// Settle is how long after a panic, from the first endpoint that is healthy
	// again, those that are still unhealthy stay in use: what ended the panic for
	// one mostly ends it for all, but the probes find that out one after the
	// other, and the first would get everything. It should be as long as a round
	// of probes takes; 0 means not at all.
	Settle time.Duration
}

// Defaults returns the options that hold where nothing is configured.
func Defaults() Options {
	return Options{
		Probing:      true,
		FailedProbes: 3,
		GoodProbes:   2,
		Failures:     5,
		Window:       30 * time.Second,
		MaxEjected:   0.5,
		MinBackoff:   10 * time.Second,
		MaxBackoff:   5 * time.Minute,
		SlowStart:    30 * time.Second,
		MinFraction:  0.1,
		Settle:       3 * time.Second,
	}
}

// Validate returns all that is out of bounds.
func (o Options) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("health: "+format, args...))
		}
	}
	check(o.FailedProbes >= 1 && o.FailedProbes <= 100, "failed probes %d, want 1..100", o.FailedProbes)
	check(o.GoodProbes >= 1 && o.GoodProbes <= 100, "good probes %d, want 1..100", o.GoodProbes)
	check(o.Failures >= 0 && o.Failures <= 100, "failures %d, want 0..100", o.Failures)
	check(o.Failures == 0 || o.Window > 0, "window %v, want more than 0", o.Window)
	check(o.MaxEjected >= 0 && o.MaxEjected <= 1, "max ejected %v, want 0..1", o.MaxEjected)
	check(o.Failures == 0 || o.MinBackoff > 0, "min backoff %v, want more than 0", o.MinBackoff)
	check(o.MaxBackoff >= o.MinBackoff, "max backoff %v, want at least the min backoff %v", o.MaxBackoff, o.MinBackoff)
	check(o.SlowStart >= 0, "slow start %v, want 0 or more", o.SlowStart)
	check(o.Settle >= 0, "settle %v, want 0 or more", o.Settle)
	check(o.MinFraction >= minFraction && o.MinFraction <= 1, "min fraction %v, want %v..1", o.MinFraction, minFraction)
	return errors.Join(problems...)
}

// backoff returns how long the n-th ejection in close succession lasts at
// least; the first is n = 1.
func (o Options) backoff(n int) time.Duration {
	if o.Probing {
		n--
	}
	if n <= 0 {
		return 0
	}
	d := o.MinBackoff
	for i := 1; i < n && d < o.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, o.MaxBackoff)
}
