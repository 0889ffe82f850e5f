package modelserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

const (
	// concurrency is how many endpoints are asked at once, and forFresh how many more if
	// these are new: they do not wait for those that are silent. timeout is how long each
	// has at most, so a thousand that are silent take 80 seconds.
	concurrency = 64
	forFresh    = 32
	timeout     = 5 * time.Second
)

// rounds asks members: each at once when it comes, and all of them once an interval, or
// as soon as those before have been asked.
type rounds struct {
	interval time.Duration
	client   *http.Client

	mu      sync.Mutex
	members fleet.Set
	wake    chan struct{}
}

func newRounds(interval time.Duration) *rounds {
	return &rounds{
		interval: interval, wake: make(chan struct{}, 1),
		client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}, Timeout: min(timeout, interval),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// set replaces the endpoints that are asked. Those that are new or have changed
// are asked at once, before others that wait.
func (r *rounds) set(set fleet.Set) {
	r.mu.Lock()
	r.members = set
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *rounds) current() fleet.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// get asks an endpoint for a path, as agent. The caller closes the body of the answer,
// whose status is 200.
func (r *rounds) get(ctx context.Context, address, path, agent string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", agent)
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("GET %s: status %d, want 200", path, response.StatusCode)
	}
	return response.Body, nil
}

// run asks until ctx ends, at most concurrency + forFresh members at once. After each change and
// each answer it calls after, which is told whether nobody is asked just now.
func (r *rounds) run(ctx context.Context, ask func(ctx context.Context, address string), after func(members fleet.Set, rest bool)) {
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	var asked sync.WaitGroup
	defer asked.Wait()
	answers := make(chan string, concurrency+forFresh)
	running := 0
	var q queue
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			q.round()
		case <-r.wake:
			q.replace(r.current())
		case address := <-answers:
			running--
			q.answered(address)
		}
		for running < concurrency+forFresh {
			address, ok := q.next(running >= concurrency)
			if !ok {
				break
			}
			running++
			asked.Go(func() {
				ask(ctx, address)
				answers <- address
			})
		}
		after(q.members, running == 0)
	}
}
