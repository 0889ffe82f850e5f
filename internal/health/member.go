package health

import (
	"fmt"
	"time"
)

// member is what the machine remembers of one endpoint.
type member struct {
	Endpoint
	// wanted says that the membership itself has it healthy.
	wanted bool

	// good and failed are the probes in a row, since the last change of state;
	// one of them is 0.
	good, failed int

	// failures are the times of the last failed requests with no success after
	// them, the oldest first, at most Options.Failures.
	failures []time.Time
	// ejected says that it is unhealthy because of failed requests alone.
	ejected bool
	// ejections in close succession, and until when the last one holds.
	ejections int
	heldUntil time.Time

	slow slowStart
}

func (e *member) become(s State, now time.Time, cause string) {
	e.State, e.Since, e.Cause = s, now, cause
	e.good, e.failed, e.failures = 0, 0, e.failures[:0]
	e.ejected, e.slow = false, slowStart{}
}

// recover makes it healthy if nothing stands against it any longer.
func (e *member) recover(now time.Time, o Options) bool {
	switch e.State {
	case Starting:
		if o.Probing && e.good < 1 {
			return false
		}
	case Unhealthy:
		if now.Before(e.heldUntil) || o.Probing && e.good < o.GoodProbes {
			return false
		}
	default:
		return false
	}
	e.become(Healthy, now, "")
	return true
}

// probeFailed counts a failed probe.
func (e *member) probeFailed(now time.Time, failure string, o Options) bool {
	e.good = 0
	e.failed++
	// An ejected one is then out because of its probes.
	if e.failed < o.FailedProbes || e.State == Starting || e.State == Unhealthy && !e.ejected {
		return false
	}
	e.become(Unhealthy, now, fmt.Sprintf("%d probes failed, the last: %s", o.FailedProbes, failure))
	return true
}

// requestsFailed notes n failed requests and reports whether they are enough to
// eject the endpoint.
func (e *member) requestsFailed(now time.Time, n int, o Options) bool {
	for range min(n, o.Failures) {
		if len(e.failures) == o.Failures {
			copy(e.failures, e.failures[1:])
			e.failures = e.failures[:len(e.failures)-1]
		}
		e.failures = append(e.failures, now)
	}
	return len(e.failures) == o.Failures && now.Sub(e.failures[0]) <= o.Window
}

func (e *member) eject(now time.Time, last Signal, o Options) {
	if now.Sub(e.Since) > o.MaxBackoff {
		e.ejections = 0
	}
	e.ejections++
	e.heldUntil = now.Add(o.backoff(e.ejections))
	e.become(Unhealthy, now, fmt.Sprintf("%d requests failed, the last: %v", o.Failures, last))
	e.ejected = true
}
