package extproc

import (
	"sync"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
)

// answers keeps the messages that were made of answers. The same few are given
// again and again, and making one takes 20 allocations; a finished message never
// changes, so any number of streams may send it.
type answers struct {
	mu   sync.RWMutex
	made map[phased]*extprocv3.ProcessingResponse
	wire map[*extprocv3.ProcessingResponse][]byte // of those in made
}

// phased is an answer to the message of one phase.
type phased struct {
	answer
	body bool // request_body; otherwise request_headers
}

// maxAnswers bounds the memory, about 2.5 KiB each. Answers are kept of small
// fleets only: the orders of three of twelve endpoints are 1,320, in two phases,
// but those of three of 64 a quarter of a million, which hardly ever come again.
const (
	maxAnswers = 4096
	smallFleet = 12
)

// message returns the message of an answer. One with a part of a body, one that tells of
// its decision, and one of a large fleet is not kept.
func (s *answers) message(p phased) *extprocv3.ProcessingResponse {
	if p.echo != nil || p.told != nil || p.fleet > smallFleet {
		return p.message()
	}
	s.mu.RLock()
	m, ok := s.made[p]
	s.mu.RUnlock()
	if ok {
		return m
	}
	m = p.message()
	wire, err := proto.Marshal(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.made[p]; ok {
		return first // another stream was first
	}
	if s.made == nil || len(s.made) >= maxAnswers {
		s.made = make(map[phased]*extprocv3.ProcessingResponse)
		s.wire = make(map[*extprocv3.ProcessingResponse][]byte)
	}
	s.made[p] = m
	if err == nil {
		s.wire[m] = wire
	}
	return m
}

// encoded returns the bytes of a message that is kept, or nil.
func (s *answers) encoded(m *extprocv3.ProcessingResponse) []byte {
	if wire, ok := passEncoded[m]; ok {
		return wire
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.wire[m]
}

func (p phased) message() *extprocv3.ProcessingResponse {
	if p.body {
		return p.bodyResponse()
	}
	return p.headersResponse()
}

// toHeaders and toBody answer the messages of these phases.
func (s *Server) toHeaders(a answer) *extprocv3.ProcessingResponse {
	return s.answers.message(phased{answer: a})
}

func (s *Server) toBody(a answer) *extprocv3.ProcessingResponse {
	return s.answers.message(phased{answer: a, body: true})
}
