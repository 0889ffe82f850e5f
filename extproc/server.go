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

	router   *route.Router
	observer Observer
	random   func() uint64
	settings atomic.Pointer[Settings]
	// scanners are reused, because each keeps a buffer as long as its prefix.
	scanners prefix.Pool
}

// New returns a server that routes by the router's current table. random
// returns uniform random numbers and is called concurrently.
func New(router *route.Router, settings Settings, observer Observer, random func() uint64) *Server {
	s := &Server{router: router, observer: observer, random: random}
	s.SetSettings(settings)
	return s
}

// SetSettings replaces the settings for requests that begin from now on.
func (s *Server) SetSettings(settings Settings) { s.settings.Store(settings.prepare()) }

// Process serves one request. It never returns an error: the text of one would
// stand in Envoy's access log, and how the stream ended says nothing about the
// request (a normal end may be seen as a cancellation and the reverse).
func (s *Server) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	st := s.begin(stream.Context())
	defer st.end()
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil
		}
		response := st.handle(message)
		if response == nil {
			return nil
		}
		if message.GetObservabilityMode() {
			continue // Envoy does not wait for answers and refuses them
		}
		if err := stream.Send(response); err != nil {
			return nil
		}
	}
}

func (s *Server) begin(ctx context.Context) *stream {
	return &stream{
		server:   s,
		settings: s.settings.Load(),
		record:   Record{Context: ctx, Began: time.Now()},
	}
}
