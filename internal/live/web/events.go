package web

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/route"
)

// writeTimeout is how long a listener may take to read an event. Who reads slower is cut
// off, and may come back.
const writeTimeout = 5 * time.Second

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
	select {
	case s.listeners <- struct{}{}:
		defer func() { <-s.listeners }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is as many as may be", MaxListeners))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
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
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without one is not slow either
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

func reasonNames() (names []string) {
	for _, r := range route.Reasons() {
		names = append(names, r.String())
	}
	return names
}
