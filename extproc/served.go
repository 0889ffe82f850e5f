package extproc

import (
	"slices"
	"strconv"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// responseHeaders learns which endpoint served. Envoy falls back silently when
// it cannot use the chosen one, so without this the count would stay on an
// endpoint that does not have the request.
func (s *stream) responseHeaders(m *extprocv3.ProcessingRequest, headers *extprocv3.HttpHeaders) {
	s.record.Answered = time.Now()
	s.releaseBody() // of one that was asked for and did not come, as where Envoy may not send it
	for _, h := range headers.GetHeaders().GetHeaders() {
		if h.GetKey() == ":status" {
			s.record.Status, _ = strconv.Atoi(value(h))
		}
	}
	s.recordAnswer(headers.GetHeaders())
	for _, attributes := range m.GetAttributes() {
		fields := attributes.GetFields()
		if address, ok := fields["upstream.address"]; ok {
			s.record.Served = canonical(address.GetStringValue())
			s.record.Attempts = int(fields["upstream.request_attempt_count"].GetNumberValue())
		}
	}
	if s.stage < decided && s.record.Served != "" {
		s.undecided()
	}
	if s.stage < decided {
		return // Envoy's own answer to a request that was not decided
	}
	s.stage = answered
	if s.record.Served != "" {
		s.bookServed()
	}
	s.server.observer.Served(&s.record)
}

// undecided records that Envoy sent the request on while its body was awaited
// here. It can no longer be steered.
func (s *stream) undecided() {
	table := s.pool.Router.Table()
	s.record.Decision = route.Decision{
		Strategy: s.policy.Strategy, Reason: route.Undecided, Rank: route.NoRank,
		Candidates: table.Candidates(), Membership: table.Membership(),
	}
	s.record.Decided = time.Now()
	if s.record.Scanned.IsZero() {
		s.record.Scanned = s.record.Decided
	}
	s.record.Keyed = s.record.Decided
	s.problem(BodyNotSent)
	s.stage = decided // whatever the observer does, it is told of the end
	s.server.observer.Decided(&s.record)
}

// bookServed moves the count to the endpoint that served, and notes when it is
// not one that the decision had named, although Envoy cannot have come to the end
// of what was named, or not the first of them, although Envoy tried no other.
func (s *stream) bookServed() {
	served, choices, attempts := s.record.Served, s.record.Decision.Choices(), s.record.Attempts
	s.record.Missed = len(choices) > 0 &&
		(attempts == 1 && served != choices[0] || attempts <= len(choices) && !slices.Contains(choices, served))
	if served == s.record.Decision.Chosen {
		return
	}
	if s.tried != nil && s.tried.current.Shadow != nil {
		s.tried.current.Shadow.Served(served, &s.tried.slots)
	}
	counter, ok := s.pool.Router.Loads().Lookup(served)
	switch {
	case !ok:
		s.slot.Release() // it runs where nothing is counted
	case s.slot.Held():
		s.slot.Move(counter)
	default:
		s.slot, _ = counter.Take()
	}
}

// canonical is the address as the membership writes it. What is no address, a
// pipe or an internal listener, stays as it is.
func canonical(address string) string {
	if c, err := fleet.ParseAddress(address); err == nil {
		return c
	}
	return address
}

// printable cuts a client's word to at most n bytes of printable ASCII, so that
// it can stand in a span.
func printable(s string, n int) string {
	s = s[:min(len(s), n)]
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}
