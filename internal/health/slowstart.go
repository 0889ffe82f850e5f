package health

import "time"

const (
	// minFraction is the least factor: a weight of 1 is scaled by weightScale.
	minFraction = 1.0 / weightScale
	// slowStartSteps bounds how often one slow start makes a new table.
	slowStartSteps = 10
)

// slowStart is the rise of an endpoint's weight after it has become healthy. A
// cold replica with its full share of the keys computes all of their prefixes
// at once, and is slow for all; one without any stays cold. Weights of a
// rendezvous hash that rise bring it keys a few at a time, and no other
// endpoint gets keys by it.
//
// The zero value is an endpoint that has its full weight.
type slowStart struct {
	begin time.Time // zero when over
	step  int
}

// advance moves to the step that is due and reports whether it is another.
func (s *slowStart) advance(now time.Time, length time.Duration) bool {
	if s.begin.IsZero() {
		return false
	}
	step := s.step
	for step < slowStartSteps && !now.Before(s.stepTime(step+1, length)) {
		step++
	}
	if step == s.step {
		return false
	}
	s.step = step
	if step == slowStartSteps {
		*s = slowStart{}
	}
	return true
}

// next is the time of the next step, zero when there is none.
func (s *slowStart) next(length time.Duration) time.Time {
	if s.begin.IsZero() {
		return time.Time{}
	}
	return s.stepTime(s.step+1, length)
}

func (s *slowStart) stepTime(step int, length time.Duration) time.Time {
	return s.begin.Add(length / slowStartSteps * time.Duration(step))
}

// factor is the share of its weight that the endpoint has.
func (s *slowStart) factor(fraction float64) float64 {
	if s.begin.IsZero() {
		return 1
	}
	return fraction + (1-fraction)*float64(s.step)/slowStartSteps
}
