// Package prober probes the members of a pool over HTTP, collects what requests
// tell about them, and reports every change of the judgement that package health
// makes of both.
package prober

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/health"
)

// Options are the settings of a prober. [Defaults] are sensible.
type Options struct {
	Health health.Options
	// Path is what is requested, beginning with "/"; a query may follow.
	Path string
	// Interval is the time from one probe of an endpoint to the next, at least
	// 10 ms. A probe that takes longer is followed by the next at once.
	Interval time.Duration
	// Timeout is how long a probe may take, connecting included.
	Timeout time.Duration
	// Concurrency is how many probes may run at once, 1 to 10000. Hanging
	// endpoints hold one each for Timeout: where more than
	// Concurrency*Interval/Timeout of them hang, probes come late.
	Concurrency int
	// MinStatus to MaxStatus are the good statuses. A redirect is an answer like
	// any other and is not followed.
	MinStatus, MaxStatus int
	// Transport sends the probes; nil is a connection for each, without a proxy.
	// A kept connection would prove only that the process still reads: one that
	// takes no new connections any more has to fail.
	Transport http.RoundTripper
}

// Defaults returns the options that hold where nothing is configured: vLLM's
// and SGLang's /health, once a second.
func Defaults() Options {
	return Options{
		Health:      health.Defaults(),
		Path:        "/health",
		Interval:    time.Second,
		Timeout:     time.Second,
		Concurrency: 32,
		MinStatus:   200,
		MaxStatus:   299,
	}
}

// Validate returns all that is out of bounds.
func (o Options) Validate() error {
	problems := []error{o.Health.Validate()}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("probe: "+format, args...))
		}
	}
	check(strings.HasPrefix(o.Path, "/"), "path %q, want it to begin with /", o.Path)
	if _, err := http.NewRequest(http.MethodGet, "http://127.0.0.1"+o.Path, http.NoBody); err != nil {
		check(false, "path %q: %w", o.Path, err)
	}
	check(o.Interval >= 10*time.Millisecond, "interval %v, want at least 10ms", o.Interval)
	check(o.Timeout > 0, "timeout %v, want more than 0", o.Timeout)
	check(o.Concurrency >= 1 && o.Concurrency <= 10_000, "concurrency %d, want 1..10000", o.Concurrency)
	check(o.MinStatus >= 200 && o.MinStatus <= o.MaxStatus && o.MaxStatus <= 599,
		"statuses %d..%d, want a range in 200..599", o.MinStatus, o.MaxStatus)
	return errors.Join(problems...)
}

// Prober judges the members of a pool. Its methods may be called from any
// goroutine, before, while and after Run runs.
type Prober struct {
	options  Options
	onChange func(fleet.Set, health.View)

	// members is a membership that Run has not taken over yet.
	members  atomic.Pointer[fleet.Set]
	counters atomic.Pointer[map[string]*health.Counter]
	view     atomic.Pointer[health.View]
	// wake tells Run that there is something in members or in a counter.
	wake chan struct{}
}

// New returns a prober. Run calls onChange, one call at a time, with each new
// membership and whenever the view of it has become another; it must not block.
func New(o Options, onChange func(fleet.Set, health.View)) (*Prober, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
			// The usual 4 KiB each, for a connection of one small request, are most
			// of what an idle process allocates.
			ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10,
		}
	}
	p := &Prober{options: o, onChange: onChange, wake: make(chan struct{}, 1)}
	p.counters.Store(&map[string]*health.Counter{})
	p.view.Store(&health.View{})
	return p, nil
}

// SetMembers takes a membership over; one that Run has not seen yet is replaced.
// Only members are probed.
func (p *Prober) SetMembers(set fleet.Set) {
	p.members.Store(&set)
	p.signal()
}

// Report tells how a request fared at an endpoint. It takes no lock, never
// blocks and keeps a number only; an address that is not a member is ignored.
func (p *Prober) Report(address string, s health.Signal) {
	counter, ok := (*p.counters.Load())[address]
	if !ok {
		return
	}
	counter.Report(s)
	if s != health.Answered {
		p.signal()
	}
}

// View returns the view that was reported last.
func (p *Prober) View() health.View { return *p.view.Load() }

// Run probes until ctx ends. It runs once.
func (p *Prober) Run(ctx context.Context) { newLoop(p, time.Now()).run(ctx) }

func (p *Prober) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
