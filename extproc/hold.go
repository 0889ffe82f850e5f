package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// holdTime is how long the answer to the headers waits for the body where Envoy's
// message_timeout runs meanwhile (STREAMED with
// send_body_without_waiting_for_header_response). It is well below that timeout,
// 200 ms by default. In FULL_DUPLEX_STREAMED no time runs.
const holdTime = 100 * time.Millisecond

// hold is what has come of a body whose request is not decided yet.
type hold struct {
	parts []*extprocv3.HttpBody
	bytes int64
}

// whileHolding collects the body and decides when it is complete, when more has
// come than is kept, or when something else than body comes.
func (s *stream) whileHolding(m *extprocv3.ProcessingRequest) ([]*extprocv3.ProcessingResponse, bool) {
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestBody:
		s.held.parts = append(s.held.parts, r.RequestBody)
		bytes := int64(len(r.RequestBody.GetBody()))
		s.held.bytes += bytes
		if !s.reserveBody(bytes) {
			s.problem(Overloaded)
			return s.letGo(false), true
		}
		if r.RequestBody.GetEndOfStream() || s.held.bytes == s.head.contentLength {
			return s.letGo(true), true
		}
		if s.held.bytes > s.settings.BodyLimit {
			return s.letGo(false), true
		}
		return nil, true
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return append(s.letGo(true), passRequestTrailers), true
	default: // Envoy's own answer, for example: the request is over
		responses := s.letGo(false)
		if response := s.answer(m); response != nil {
			return append(responses, response), true
		}
		return responses, false
	}
}

// letGo decides on what has come, and answers the headers and then each part of
// the body. Retries stay off: in these modes Envoy would send parts of the body
// twice.
func (s *stream) letGo(complete bool) []*extprocv3.ProcessingResponse {
	parts := s.held.parts
	s.held = hold{}
	for _, part := range parts {
		s.record.BodyBytes += int64(len(part.GetBody()))
	}
	responses := []*extprocv3.ProcessingResponse{s.server.toHeaders(s.decideOn(complete, false, parts...))}
	for _, part := range parts {
		a := unchanged
		if s.mode == modeDuplex {
			a.echo = part
		}
		responses = append(responses, s.server.toBody(a))
	}
	return responses
}

// heldTooLong decides on what has come when the time is over.
func (s *stream) heldTooLong() (responses []*extprocv3.ProcessingResponse, ok bool) {
	defer func() {
		if recover() != nil {
			s.panicked()
			responses, ok = nil, false
		}
	}()
	return s.letGo(false), true
}
