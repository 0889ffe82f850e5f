// Package kubernetes follows the EndpointSlices of one Service at a Kubernetes
// API server: it lists them, watches from there, and lists again whenever it may
// have missed something. It speaks the API's HTTP and JSON and needs nothing of
// Kubernetes' own libraries.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

// Options say what to follow, and where.
type Options struct {
	// Server is the address of the API server, "https://host:port"; plain http
	// only without a token.
	Server string
	// TokenFile holds the bearer token; "" sends none. CAFile holds the
	// authorities that vouch for the server; "" is those of the system. Both are
	// read again before each request, because both are replaced while we run.
	TokenFile, CAFile string
	// Namespace and Service name the Service.
	Namespace, Service string
	Slices             endpointslice.Options
}

// times are the waits of a source.
type times struct {
	// watch is how long the server is asked to go on with a watch: of this to
	// one and a half of it, so that many routers do not come back together.
	watch time.Duration
	// grace is how much longer than that it may take, and how long a list or the
	// beginning of a watch may. A connection that has gone silent costs no more.
	grace time.Duration
	// ping is how long an HTTP/2 connection is silent before it is asked whether
	// it lives, and how long it may take to say so.
	ping time.Duration
	// retry is the wait after a first failure; it doubles up to retryMost.
	retry, retryMost time.Duration
}

func defaultTimes() times {
	return times{watch: time.Minute, grace: 10 * time.Second, ping: 5 * time.Second, retry: 100 * time.Millisecond, retryMost: 5 * time.Second}
}

// Source is the membership of a Service.
type Source struct {
	options Options
	times   times
	client  *client
}

// New returns a source. It reads no file and opens no connection.
func New(o Options) (*Source, error) { return newSource(o, defaultTimes()) }

func newSource(o Options, t times) (*Source, error) {
	c, err := newClient(o, t)
	if err != nil {
		return nil, err
	}
	return &Source{options: o, times: t, client: c}, nil
}

// Run follows the Service. A report with an error says that the API server
// cannot be asked or refuses to answer, and comes once for each such cause; the
// membership stays as it is meanwhile. A Service without endpoints is a
// membership like any other.
func (s *Source) Run(ctx context.Context, report func(discovery.Update)) error {
	defer s.client.close()
	w := &watcher{Source: s, report: report}
	for failures := 0; ; {
		began := time.Now()
		err := w.cycle(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failures++ // also where the server ends each watch at once
		if time.Since(began) > s.times.retryMost {
			failures = 0
		}
		if err != nil && (failures >= patience || !errors.Is(err, errExpired)) {
			w.failed(err)
		}
		if failures > 0 {
			wait(ctx, backoff(s.times, failures, retryAfter(err), rand.Float64()))
		}
	}
}

// patience is how often in a row a version may have expired before it is told:
// after a restart of the API server it is nothing to worry about.
const patience = 4

// backoff is how long to wait after so many failures in a row: half of it is
// fixed and half up to chance, in [0,1), so that routers do not come back
// together. What the server asks for counts, within bounds.
func backoff(t times, failures int, asked time.Duration, chance float64) time.Duration {
	full := t.retryMost
	if shift := failures - 1; shift < 16 {
		full = min(full, t.retry<<shift)
	}
	full = max(full, min(asked, maxRetryAfter))
	return full/2 + time.Duration(chance*float64(full)/2)
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Read asks for the membership once.
func (s *Source) Read(ctx context.Context) (discovery.Update, error) {
	defer s.client.close()
	var last discovery.Update
	w := &watcher{Source: s, report: func(u discovery.Update) { last = u }}
	if err := w.list(ctx); err != nil {
		return last, w.failure(err)
	}
	return last, last.Err
}

func (s *Source) name() string {
	return fmt.Sprintf("Service %s/%s", s.options.Namespace, s.options.Service)
}
