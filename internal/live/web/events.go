package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/route"
)

const (
	// writeTimeout is how long an event may take to go out, behind what the kernel holds
	// for those who read slowly, and as long again for each writeSize of it: that of
	// thousands of endpoints is large. Who reads slower is cut off, and may come back.
	writeTimeout = 5 * time.Second
	writeSize    = 2 * writeBuffer
	// writeBuffer is how much the kernel may hold, in bytes; Linux takes twice as much,
	// bookkeeping included. By itself it would take megabytes: minutes of events.
	writeBuffer = 64 << 10
)

// ConnContext bounds what is sent on a connection and not read yet. It is to be that of
// the http.Server, or streams to nobody take long to end.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	if c, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = c.SetWriteBuffer(writeBuffer) // without, it works as it did
	}
	return ctx
}

// events serves /api/live/events, ?interval= apart: the whole state, then what is new.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	interval := time.Second
	if text := r.URL.Query().Get("interval"); text != "" {
		var err error
		if interval, err = time.ParseDuration(text); err != nil || interval < MinInterval || interval > MaxInterval {
			fail(w, http.StatusBadRequest, fmt.Sprintf("interval=%.40q: want a time such as 1s, %v to %v", text, MinInterval, MaxInterval))
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // asks what there is, and takes no place
		return
	}
	select {
	case s.listeners <- struct{}{}:
		defer func() { <-s.listeners }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is as many as may be", MaxListeners))
		return
	}
	s.stream(w, r, interval)
}

// stream sends until the listener leaves, reads too slowly, or the server is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, interval time.Duration) {
	control := http.NewResponseController(w)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	seen, generation := live.Since{Decisions: live.MaxDecisions}, -1
	var b bytes.Buffer
	for whole := true; ; whole = false {
		e, next := s.event(seen, whole)
		seen = next
		if e.Generation != generation {
			e.Config, _ = s.options.Config()
			generation = e.Generation
		}
		b.Reset()
		b.WriteString("data: ")
		b.Write(encode(e))
		b.WriteString("\n\n")
		_ = control.SetWriteDeadline(time.Now().Add(s.patienceFor(b.Len()))) // a writer without one is not slow either
		if _, err := w.Write(b.Bytes()); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// patienceFor is how long so many bytes may take.
func (s *Server) patienceFor(bytes int) time.Duration {
	return s.patience * time.Duration(1+bytes/writeSize)
}

func reasonNames() (names []string) {
	for _, r := range route.Reasons() {
		names = append(names, r.String())
	}
	return names
}
