// Package web serves the live page and its JSON to operators: the state as a snapshot
// and as a stream, and what this server would decide on a request body. It is not for
// tenants: whoever may ask can learn whose cache is warm.
package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
)

const (
	// MaxListeners is how many streams may be open at once.
	MaxListeners = 16
	// MinInterval and MaxInterval are how often a stream may tell.
	MinInterval = 100 * time.Millisecond
	MaxInterval = 10 * time.Second
	// endpointTime is how much longer it takes at least from one snapshot of the fleet to
	// the next for each endpoint: with 500 there are ten a second, with 10,000 one in two
	// seconds.
	endpointTime = 200 * time.Microsecond
)

// Options are what a server shows.
type Options struct {
	Version string
	Store   *live.Store
	Pools   []live.Pool
	// Config returns the effective configuration as YAML, without secrets, and which
	// one it is, counted from the start.
	Config func() (text string, generation int)
	// Explain decides on a request body without consequences.
	Explain func(Question) (view.Explanation, error)
}

// Server serves the page. It must be closed, or open streams go on.
type Server struct {
	options   Options
	explains  chan struct{}
	listeners chan struct{}
	closed    chan struct{}
	closing   sync.Once
	patience  time.Duration // writeTimeout

	mu sync.Mutex
	// fleet is the last snapshot of the fleet, made at the time made, of so many
	// endpoints.
	fleet     sight
	made      time.Time
	endpoints int
}

// sight is what all listeners are told alike, as JSON.
type sight struct{ pools, warnings json.RawMessage }

// New returns a server that serves nothing until its handler is.
func New(o Options) *Server {
	return &Server{
		options: o, closed: make(chan struct{}), patience: writeTimeout,
		explains: make(chan struct{}, maxExplains), listeners: make(chan struct{}, MaxListeners),
	}
}

// Close ends the streams, and those that come.
func (s *Server) Close() { s.closing.Do(func() { close(s.closed) }) }

// Register serves the page at / and the JSON below /api. Nobody but operators may reach
// the mux.
func (s *Server) Register(mux *http.ServeMux) {
	mux.Handle("GET /{$}", page(pageFile("index.html")))
	mux.Handle("GET /page/{file}", page(http.HandlerFunc(servePageFile)))
	mux.Handle("GET /api/live", api(http.HandlerFunc(s.snapshot)))
	mux.Handle("GET /api/live/events", api(http.HandlerFunc(s.events)))
	mux.Handle("POST /api/explain", api(http.HandlerFunc(s.explain)))
}

// Refuse serves nothing but the reason why there is no page here, at the same places.
func Refuse(mux *http.ServeMux, reason string) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w, http.StatusForbidden, reason) })
	mux.Handle("GET /{$}", refuse)
	mux.Handle("/api/", refuse)
}

// event is a snapshot as it is sent: the fleet is written once for all.
type event struct {
	view.Snapshot
	Pools    json.RawMessage `json:"pools"`
	Warnings json.RawMessage `json:"warnings"`
}

// event returns what is new for somebody.
func (s *Server) event(seen live.Since, whole bool) (event, live.Since) {
	now := time.Now()
	f := s.fleetOf(now)
	e := event{Pools: f.pools, Warnings: f.warnings}
	e.At = now
	var next live.Since
	e.Seconds, e.Decisions, next = s.options.Store.Since(seen, now)
	e.Second, e.Position = next.Second, next.Position
	text, generation := s.options.Config()
	e.Generation = generation
	if whole {
		e.Version, e.Reasons, e.Config = s.options.Version, reasonNames(), text
	}
	return e, next
}

// fleetOf returns a snapshot of the fleet that is as young as its size allows.
func (s *Server) fleetOf(now time.Time) sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	const jitter = MinInterval / 10 // of those who ask at the same pace
	if now.Sub(s.made) < max(MinInterval-jitter, time.Duration(s.endpoints)*endpointTime-jitter) {
		return s.fleet
	}
	pools, warnings := s.options.Store.Fleet(s.options.Pools, now)
	s.fleet, s.made, s.endpoints = sight{encode(pools), encode(warnings)}, now, 0
	for _, p := range pools {
		s.endpoints += len(p.Members)
	}
	return s.fleet
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("web: encode %T: %v", v, err)) // plain values always encode
	}
	return text
}

// snapshot serves /api/live: ?seconds= and ?decisions= say how much of the past is wanted;
// with ?probe= the decisions are those of a probe.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) {
	seconds, err := number(r, "seconds", live.MaxSeconds)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	decisions, err := number(r, "decisions", live.MaxDecisions)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	probe := r.URL.Query().Get("probe")
	if probe != "" && !extproc.IsProbeID(probe) {
		fail(w, http.StatusBadRequest, fmt.Sprintf("probe=%.40q: want 32 hex digits", probe))
		return
	}
	e, _ := s.event(live.Since{Decisions: decisions}, true)
	if probe != "" {
		e.Decisions = s.options.Store.Probe(probe)
	}
	e.Seconds = e.Seconds[max(len(e.Seconds)-seconds, 0):]
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(e), '\n'))
}

// number reads a number of a query, 0 to most, which is the default.
func number(r *http.Request, name string, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s=%.40q: want a number, 0 to %d", name, text, most)
	}
	return n, nil
}

// fail answers with a problem of RFC 9457.
func fail(w http.ResponseWriter, code int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(code), code, detail})
}
