package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// Fault is what is wrong with a replica until it is set to something else. The
// zero value is a sound replica. It is set by POST /control/fault, with the
// parameters kind, factor and health, or by [Replica.SetFault]; the paths of
// /stats, /control and /metrics never suffer.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Factor is by how much a slow replica's times grow, more than 0 and at most
	// 1,000,000; below 1 it is faster.
	Factor float64 `json:"factor,omitempty"`
	// Health makes GET /health and /ping suffer as model requests do. A slow
	// replica's answer at once in any case.
	Health bool `json:"health,omitempty"`
}

// FaultKind is a sort of fault.
type FaultKind string

// The faults.
const (
	// NoFault serves.
	NoFault FaultKind = "off"
	// Slow takes Factor times as long for everything that the engine does, from
	// the next step on. Times of control headers stay as they are.
	Slow FaultKind = "slow"
	// Hang accepts requests and says nothing, not even headers, and the engine
	// stands still, like a process that is stopped. When the fault is over
	// everything goes on. Times of control headers of requests that had begun go on
	// meanwhile.
	Hang FaultKind = "hang"
	// Reset drops the connection (the stream in HTTP/2) of a new request.
	Reset FaultKind = "reset"
	// Unavailable answers new requests with 503.
	Unavailable FaultKind = "503"
)

const maxFactor = 1_000_000

func (f Fault) check() error {
	switch f.Kind {
	case NoFault, Hang, Reset, Unavailable:
		return nil
	case Slow:
		if !(f.Factor > 0 && f.Factor <= maxFactor) {
			return fmt.Errorf("fault slow: factor %v: want more than 0 and at most %d", f.Factor, maxFactor)
		}
		return nil
	default:
		return fmt.Errorf("fault %q: want %s, %s, %s, %s or %s", f.Kind, NoFault, Slow, Hang, Reset, Unavailable)
	}
}

// parseFault reads the parameters of POST /control/fault.
func parseFault(q url.Values) (Fault, error) {
	f := Fault{Kind: FaultKind(q.Get("kind"))}
	var errs []error
	if f.Kind == "" {
		errs = append(errs, errors.New("kind: required"))
	}
	if s := q.Get("factor"); s != "" {
		var err error
		if f.Factor, err = strconv.ParseFloat(s, 64); err != nil {
			errs = append(errs, fmt.Errorf("factor %q: want a number", s))
		}
	}
	if s := q.Get("health"); s != "" {
		var err error
		if f.Health, err = strconv.ParseBool(s); err != nil {
			errs = append(errs, fmt.Errorf("health %q: want true or false", s))
		}
	}
	return f, errors.Join(errs...)
}

// switchboard holds the fault of a replica.
type switchboard struct {
	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed by the next change
}

func newSwitchboard() *switchboard {
	return &switchboard{fault: Fault{Kind: NoFault}, changed: make(chan struct{})}
}

func (s *switchboard) now() (f Fault, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.changed
}

// set applies the fault by calling apply before it counts for the next request.
func (s *switchboard) set(f Fault, apply func(Fault)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	apply(f)
	close(s.changed)
	s.changed = make(chan struct{})
}

// suffer lets a request that has just come have the fault. It returns nil when it
// may go on.
func (s *switchboard) suffer(ctx context.Context, health bool) error {
	for {
		f, changed := s.now()
		if health && !f.Health {
			return nil
		}
		switch f.Kind {
		case Reset:
			panic(http.ErrAbortHandler)
		case Unavailable:
			return &apiError{status: http.StatusServiceUnavailable, message: "unavailable, as /control/fault asked"}
		case Hang:
		default:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Fault returns what is wrong with the replica now.
func (r *Replica) Fault() Fault {
	f, _ := r.faults.now()
	return f
}

// SetFault makes the replica misbehave, or sound again. It refuses an unknown
// kind and a slow replica without a factor.
func (r *Replica) SetFault(f Fault) error {
	if f.Kind == "" {
		f.Kind = NoFault
	}
	if err := f.check(); err != nil {
		return err
	}
	r.faults.set(f, r.worker.suffer)
	return nil
}

// serveFault is /control/fault.
func (r *Replica) serveFault(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodPost {
		f, err := parseFault(req.URL.Query())
		if err == nil {
			err = r.SetFault(f)
		}
		if err != nil {
			badRequest(err).write(w)
			return
		}
	}
	writeJSON(w, http.StatusOK, r.Fault())
}

// serveHealth is /health and /ping: 200 without a body.
func (r *Replica) serveHealth(w http.ResponseWriter, req *http.Request) {
	var refused *apiError
	if errors.As(r.faults.suffer(req.Context(), true), &refused) {
		refused.write(w)
	}
}
