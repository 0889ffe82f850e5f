package live

import (
	"maps"
	"time"

	"github.com/warmpath/warmpath/extproc"
)

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

// inspected is what the answers of an endpoint said that were looked at.
type inspected struct {
	at             int64 // second of the last one
	prompt, cached float64
	warm, cold     meanTime
}

// meanTime is the mean of times, of which the earlier count less and less.
type meanTime struct{ sum, n float64 }

func (m *meanTime) add(d time.Duration) {
	m.sum, m.n = m.sum*fade+d.Seconds(), m.n*fade+1
}

func (m *meanTime) mean() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / m.n
}

// fade is what an answer that was looked at counts for after the next one.
const fade = 0.99

// inspect takes what was read of a response. Engines that leave the cached tokens out when
// there are none are believed only if they have told of some before.
func (s *Store) inspect(r *extproc.Record) {
	i := r.Inspection
	if i.Result != extproc.InspectionRead && (i.Result != extproc.InspectionNoCached || !s.tellsOfCached(r.Served)) {
		return
	}
	var first time.Duration
	if !i.FirstToken.IsZero() {
		first = i.FirstToken.Sub(r.Began)
	}
	cached, chars := expected(r)
	s.Inspected(r.Served, int(i.PromptTokens), int(i.CachedTokens), first, cached > 0 && 2*cached >= chars)
}

func (s *Store) tellsOfCached(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inspected[address] != nil
}

// Inspected tells what an engine said of a prompt: its tokens, and those that it found in
// its cache; and how long its first content took, 0 if that is not known. warm says that
// it was expected to have a part of the prompt. Endpoints that were never chosen are
// ignored.
func (s *Store) Inspected(address string, promptTokens, cachedTokens int, firstToken time.Duration, warm bool) {
	if promptTokens <= 0 || cachedTokens < 0 || cachedTokens > promptTokens {
		return
	}
	now := s.secondOf(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.inspected[address]
	if x == nil {
		if !s.chosen(address) || !s.roomInspected(now) {
			return
		}
		x = new(inspected)
		s.inspected[address] = x
	}
	x.at = now
	x.prompt, x.cached = x.prompt*fade+float64(promptTokens), x.cached*fade+float64(cachedTokens)
	if firstToken > 0 {
		if warm {
			x.warm.add(firstToken)
		} else {
			x.cold.add(firstToken)
		}
	}
}

// roomInspected reports whether another endpoint's answers can be counted, and forgets
// those of long ago if that is needed.
func (s *Store) roomInspected(now int64) bool {
	if len(s.inspected) >= maxEndpoints {
		maps.DeleteFunc(s.inspected, func(_ string, x *inspected) bool { return now-x.at > forgottenAfter })
	}
	return len(s.inspected) < maxEndpoints
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
