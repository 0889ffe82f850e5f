package live

import "maps"

// A minute is counted in twelve parts, so that what is shown is of the last 55 to 60
// seconds.
const (
	partSeconds = 5
	parts       = 12
	// forgottenAfter is how long an endpoint may be without requests until others may
	// take its place, in seconds.
	forgottenAfter = MaxSeconds
)

// endpoint is what was decided for one.
type endpoint struct {
	last  int64 // the last second with a request
	parts [parts]part
}

// part is of five seconds.
type part struct {
	at                 int64
	requests, overflow uint32
	cached, chars      uint64
}

// minute is the sum of the parts.
type minute struct {
	requests, overflow int64
	cached, chars      uint64
}

func (m *minute) add(n minute) {
	m.requests, m.overflow = m.requests+n.requests, m.overflow+n.overflow
	m.cached, m.chars = m.cached+n.cached, m.chars+n.chars
}

// endpoint returns what is counted of an endpoint, nil if there are too many. s.mu is
// held.
func (s *Store) endpoint(p place, now int64) *endpoint {
	e := s.endpoints[p]
	if e == nil {
		if len(s.endpoints) >= maxEndpoints && !s.makeRoom(now) {
			return nil
		}
		e = new(endpoint)
		s.endpoints[p] = e
	}
	return e
}

// makeRoom forgets the endpoints that have had no request for long.
func (s *Store) makeRoom(now int64) bool {
	if s.madeRoom == now+1 { // once a second is enough
		return false
	}
	s.madeRoom = now + 1
	maps.DeleteFunc(s.endpoints, func(_ place, e *endpoint) bool { return now-e.last > forgottenAfter })
	return len(s.endpoints) < maxEndpoints
}

func (e *endpoint) count(now int64, overflow bool, cached, chars int) {
	e.last = now
	p := &e.parts[uint64(now/partSeconds)%parts]
	if at := now / partSeconds; p.at != at {
		*p = part{at: at}
	}
	p.requests++
	if overflow {
		p.overflow++
	}
	if cached != unknown {
		p.cached += uint64(cached)
		p.chars += uint64(chars)
	}
}

// minute sums the last one up.
func (e *endpoint) minute(now int64) (m minute) {
	for _, p := range e.parts {
		if p.at > now/partSeconds-parts {
			m.add(minute{int64(p.requests), int64(p.overflow), p.cached, p.chars})
		}
	}
	return m
}

// chosen reports whether any pool has had a request for the address.
func (s *Store) chosen(address string) bool {
	for p := range s.endpoints {
		if p.address == address {
			return true
		}
	}
	return false
}
