package extproc

import (
	"slices"
	"strconv"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/fleet"
)

// responseHeaders learns which endpoint served. Envoy falls back silently when
// it cannot use the chosen one, so without this the count would stay on an
// endpoint that does not have the request.
func (s *stream) responseHeaders(m *extprocv3.ProcessingRequest, headers *extprocv3.HttpHeaders) {
	for _, h := range headers.GetHeaders().GetHeaders() {
		if h.GetKey() == ":status" {
			s.record.Status, _ = strconv.Atoi(value(h))
		}
	}
	for _, attributes := range m.GetAttributes() {
		fields := attributes.GetFields()
		if address, ok := fields["upstream.address"]; ok {
			s.record.Served = canonical(address.GetStringValue())
			s.record.Attempts = int(fields["upstream.request_attempt_count"].GetNumberValue())
		}
	}
	if s.record.Served == "" {
		return // Envoy's own answer, or it does not tell
	}
	switch {
	case s.decided:
		s.bookServed()
	case !s.record.Undecided:
		s.bookUndecided()
	}
	s.server.observer.Served(&s.record)
}

// bookUndecided counts a request that Envoy sent on while its body was awaited
// here. It can no longer be steered, but its endpoint has it.
func (s *stream) bookUndecided() {
	s.problem(BodyNotSent)
	s.record.Undecided = true
	s.releaseScanner() // a body that comes now is too late; a decision on it would lose this slot
	if counter, ok := s.server.router.Loads().Lookup(s.record.Served); ok {
		s.slot, _ = counter.Take()
	}
}

// bookServed moves the count to the endpoint that served and notes when the
// decision had not named it at all.
func (s *stream) bookServed() {
	served, choices := s.record.Served, s.record.Decision.Choices()
	s.record.Missed = len(choices) > 0 && !slices.Contains(choices, served)
	if served == s.record.Decision.Chosen {
		return
	}
	if counter, ok := s.server.router.Loads().Lookup(served); ok {
		s.slot.Move(counter)
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
