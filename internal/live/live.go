// Package live keeps what operators look at while it happens: the last decisions, what
// was decided in each second of the last quarter of an hour, and how the endpoints fared
// in the last minute. It is told by requests, as an observer, and asked by the page and
// the terminal (packages view and web).
//
// Everything has a fixed size, or one entry for each endpoint. A request pays for one
// short lock at its decision, its response and its end, and allocates nothing.
package live

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

const (
	// MaxDecisions is how many of the last decisions are kept.
	MaxDecisions = 200
	// MaxSeconds is how far back the time lines go: 15 minutes.
	MaxSeconds = 900
	// maxEndpoints bounds those that are counted; the memberships of a process have
	// fewer, but come and go.
	maxEndpoints = 1 << 15
)

// Store keeps it. Its methods may be called at once.
type Store struct {
	began time.Time

	mu        sync.Mutex
	last      ring
	probes    probes
	seconds   [MaxSeconds]second
	endpoints map[place]*endpoint
	inspected map[string]*inspected
	madeRoom  int64 // the second after the one in which endpoints were forgotten

	hotting sync.Mutex
	hots    map[string]hotOf // by pool
}

// place is an endpoint in a pool.
type place struct{ pool, address string }

var _ extproc.Observer = (*Store)(nil)

// New returns an empty store whose seconds count from now.
func New(now time.Time) *Store {
	s := &Store{began: now, endpoints: make(map[place]*endpoint), inspected: make(map[string]*inspected), hots: make(map[string]hotOf)}
	for i := range s.seconds {
		s.seconds[i].at = -1
	}
	return s
}

// secondOf is the number of a moment's second since the start.
func (s *Store) secondOf(t time.Time) int64 { return int64(t.Sub(s.began) / time.Second) }

// Decided implements extproc.Observer.
func (s *Store) Decided(r *extproc.Record) {
	now := s.secondOf(r.Decided)
	cached, chars := expected(r)
	s.mu.Lock()
	s.probes.add(r, s.last.add(r, cached, chars))
	if at := s.second(now); at != nil {
		at.count(r, cached, chars)
	}
	if r.Decision.Chosen != "" {
		if e := s.endpoint(place{r.Pool, r.Decision.Chosen}, now); e != nil {
			e.count(now, overflowed(r.Decision.Reason), cached, chars)
		}
	}
	s.mu.Unlock()
}

// Served implements extproc.Observer.
func (s *Store) Served(r *extproc.Record) {
	now := s.secondOf(r.Answered)
	s.mu.Lock()
	if e := s.last.find(r); e != nil {
		e.served(r)
		s.last.touch(e)
	}
	s.probes.served(r)
	if at := s.second(now); at != nil && r.Status >= 500 {
		at.failed++ // not with its request, whose second has been told of
	}
	s.mu.Unlock()
}

// Ended implements extproc.Observer.
func (s *Store) Ended(r *extproc.Record) {
	if r.Inspection != nil {
		s.inspect(r)
	}
	s.mu.Lock()
	if e := s.last.find(r); e != nil {
		e.ended = true
		s.last.touch(e)
		s.last.forget(e)
	}
	s.probes.ended(r)
	s.mu.Unlock()
}

// Panicked implements extproc.Observer.
func (s *Store) Panicked(*extproc.Record, []byte) {}

// unknown is the number of cached characters where nobody remembers who has served what.
const unknown = -1

// expected is how many characters of a prompt the chosen endpoint has served before, and
// of how many; unknown where nothing is remembered.
func expected(r *extproc.Record) (cached, chars int) {
	cached, chars, known := r.Expected()
	if !known {
		return unknown, chars
	}
	return cached, chars
}

func overflowed(r route.Reason) bool {
	return r == route.Overflow || r == route.Relief || r == route.Saturated
}
