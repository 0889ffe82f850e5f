package health

import "time"

// Panic is whether endpoints are used that are not healthy, because there are
// no others, or hardly any.
type Panic uint8

// The phases of a panic.
const (
	// Calm: only healthy endpoints are used.
	Calm Panic = iota
	// Panicking: no endpoint is healthy that the membership would have used. All
	// of those are used.
	Panicking
	// Settling: some are healthy again, and for [Options].Settle the unhealthy
	// ones are used with them. Those that never were healthy are not.
	Settling
)

// panicking is the panic of a machine.
type panicking struct {
	phase Panic
	until time.Time // when it has settled at the latest; zero in other phases
}

// update takes over how many endpoints are wanted and how many of them are
// healthy and unhealthy.
func (p *panicking) update(wanted, healthy, unhealthy int, now time.Time, settle time.Duration) {
	switch {
	case wanted > 0 && healthy == 0:
		*p = panicking{phase: Panicking}
	case p.phase == Panicking && unhealthy > 0 && healthy > 0 && settle > 0:
		*p = panicking{phase: Settling, until: now.Add(settle)}
	case p.phase == Panicking, unhealthy == 0, p.overdue(now):
		*p = panicking{}
	}
}

// overdue reports whether it has settled by time.
func (p *panicking) overdue(now time.Time) bool {
	return p.phase == Settling && !now.Before(p.until)
}

// uses reports whether endpoints of a state are used.
func (p Panic) uses(s State) bool {
	return s == Healthy || p == Panicking || p == Settling && s == Unhealthy
}
