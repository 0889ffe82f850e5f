package extproc

import (
	"context"
	"sync/atomic"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
)

// Server implements Envoy's ExternalProcessor service.
type Server struct {
	extprocv3.UnimplementedExternalProcessorServer

	pools    atomic.Pointer[Pools]
	observer Observer
	random   func() uint64
	began    time.Time
	settings atomic.Pointer[Settings]
	// scanners are reused, because each keeps a buffer as long as its prefix.
	scanners prefix.Pool
	answers  answers
	// bodies, streams and inspected bound what all requests hold.
	bodies, streams  budget
	inspected        budget
	refused, holding atomic.Int64
}

// New returns a server of one pool, which routes by the router's current table.
// random returns uniform random numbers and is called concurrently.
func New(router *route.Router, settings Settings, observer Observer, random func() uint64) *Server {
	return NewForPools(&Pools{fallback: &Pool{Router: router}}, settings, observer, random)
}

// NewForPools is New for any number of pools.
func NewForPools(pools *Pools, settings Settings, observer Observer, random func() uint64) *Server {
	s := &Server{observer: observer, random: random, began: time.Now()}
	s.SetPools(pools)
	s.SetSettings(settings)
	return s
}

// SetPools replaces the pools for requests that begin from now on.
func (s *Server) SetPools(pools *Pools) { s.pools.Store(pools) }

// SetSettings replaces the settings for requests that begin from now on.
func (s *Server) SetSettings(settings Settings) { s.settings.Store(settings.prepare()) }

// Holding returns how many requests hold the slot of an endpoint. It is counted
// apart from the endpoints' own counts, so that each can be checked by the other.
func (s *Server) Holding() int64 { return s.holding.Load() }

// Refused returns how many requests were left to Envoy since the start, because
// Settings.Streams others were being served.
func (s *Server) Refused() int64 { return s.refused.Load() }

// Process serves one request. It returns no error but that of lost: the text of one
// would stand in Envoy's access log, and how the stream ended says nothing about the
// request (a normal end may be seen as a cancellation and the reverse).
func (s *Server) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	st := s.begin(stream.Context())
	if !s.streams.take(1, st.settings.Streams) {
		s.refused.Add(1)
		return s.leaveToEnvoy(stream, st)
	}
	defer s.streams.give(1)
	defer st.end()
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil
		}
		responses, ok := st.handle(message)
		// In observability mode Envoy does not wait for answers and refuses them.
		if !message.GetObservabilityMode() && !send(stream, responses) || !ok {
			return st.lost()
		}
		st.afterwards()
		if st.stage == holding && st.mode == modeStreamed {
			s.processTimed(stream, st)
			return nil
		}
	}
}

// leaveToEnvoy lets a request go on without us. Its headers are answered, so that it
// has its pool as far as they tell, and retries where they are safe: Envoy's own
// choice may be an endpoint that is gone. In full duplex its body, of which Envoy
// keeps no copy, is handed back part by part.
func (s *Server) leaveToEnvoy(stream extprocv3.ExternalProcessor_ProcessServer, st *stream) (err error) {
	defer func() {
		if recover() != nil {
			st.broken = true
			st.panicked()
			err = st.lost()
		}
	}()
	m, err := stream.Recv()
	headers := m.GetRequestHeaders()
	if err != nil || headers == nil || m.GetObservabilityMode() {
		return nil
	}
	st.listen(m)
	duplex := st.mode == modeDuplex || st.back == modeDuplex
	if !duplex && st.mode != modeNone && !headers.GetEndOfStream() {
		return nil // the body would pass through here
	}
	if stream.Send(s.toHeaders(st.unsteered(headers))) != nil || !duplex {
		return nil // who has left needs no answer
	}
	for {
		if m, err = stream.Recv(); err != nil {
			return nil
		}
		if response := st.passing(m); response == nil || stream.Send(response) != nil {
			return nil
		}
	}
}

// send sends answers and reports whether that worked.
func send(stream extprocv3.ExternalProcessor_ProcessServer, responses []*extprocv3.ProcessingResponse) bool {
	for _, r := range responses {
		if stream.Send(r) != nil {
			return false
		}
	}
	return true
}

// processTimed serves the rest of a stream whose request has to be decided
// within [holdTime].
func (s *Server) processTimed(grpcStream extprocv3.ExternalProcessor_ProcessServer, st *stream) {
	messages := make(chan *extprocv3.ProcessingRequest)
	go func() {
		defer close(messages)
		for {
			m, err := grpcStream.Recv()
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-grpcStream.Context().Done():
				return
			}
		}
	}()
	timer := time.NewTimer(holdTime)
	defer timer.Stop()
	for {
		var responses []*extprocv3.ProcessingResponse
		ok := true
		select {
		case message, open := <-messages:
			if !open {
				return
			}
			responses, ok = st.handle(message)
		case <-timer.C:
			if st.stage == holding {
				responses, ok = st.heldTooLong()
			}
		}
		if !send(grpcStream, responses) || !ok {
			return
		}
		st.afterwards()
	}
}

func (s *Server) begin(ctx context.Context) *stream {
	settings, pools := s.settings.Load(), s.pools.Load()
	return &stream{
		server:   s,
		pools:    pools,
		pool:     pools.fallback,
		settings: settings,
		record:   Record{Context: ctx, Began: time.Now(), Generation: settings.Generation},
	}
}

// Now is the time on the clock of [route.Request].Now.
func (s *Server) Now() int64 { return s.at(time.Now()) }

func (s *Server) at(t time.Time) int64 { return int64(t.Sub(s.began)) }
