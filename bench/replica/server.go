package replica

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// server is an http.Server whose close also waits for the handlers.
type server struct {
	listener net.Listener
	http     http.Server
	done     chan struct{}
	once     sync.Once
	err      error

	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup
}

// maxStreams is the number of HTTP/2 streams a connection may have; the
// default of 250 would queue held responses in the client.
const maxStreams = 1 << 16

func serve(l net.Listener, h http.Handler) *server {
	s := &server{listener: l, done: make(chan struct{})}
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.handlers.Done()
		h.ServeHTTP(w, r)
	})
	s.http.Protocols = new(http.Protocols)
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	}()
	return s
}

func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handlers.Add(1)
	}
	return !s.closed
}

func (s *server) close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		_ = s.http.Close()
		<-s.done
		s.handlers.Wait()
	})
	return s.err
}
