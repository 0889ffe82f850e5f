package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// Group is clients that do the same, each one request after the other.
type Group struct {
	// Clients is how many there are, and so how many requests run at once at most.
	Clients int
	// Forms are sent in turn.
	Forms []Form
	// Rate is how many requests a second all of them begin at most; 0 is no limit.
	Rate float64
}

// Options describe traffic.
type Options struct {
	// URL is that of the gateway, without a path.
	URL string
	// Seed makes the texts.
	Seed   uint64
	Groups []Group
	// Name begins the ids of all requests.
	Name string
}

// Traffic is clients that send requests until they are stopped.
type Traffic struct {
	options Options
	ctx     context.Context
	stop    context.CancelFunc
	clients []*http.Client
	wg      sync.WaitGroup
	// gate is held for reading by each request: see Pause.
	gate      sync.RWMutex
	begun     atomic.Int64
	uploading atomic.Int64
	streaming atomic.Int64

	mu   sync.Mutex
	done []*Sent
}

// Start starts the clients; half of each group speak HTTP/2.
func Start(ctx context.Context, o Options) *Traffic {
	t := &Traffic{options: o, ctx: ctx}
	running, stop := context.WithCancel(ctx)
	t.stop = stop
	for _, g := range o.Groups {
		allowed := t.allow(running, g.Rate)
		for c := range g.Clients {
			client := newClient(c%2 == 1)
			t.clients = append(t.clients, client)
			t.wg.Go(func() {
				for i := c; allowed(); i++ {
					t.one(client, &g.Forms[i%len(g.Forms)], "")
				}
			})
		}
	}
	return t
}

// allow returns what waits until the next request may begin, and reports false
// when there is none.
func (t *Traffic) allow(running context.Context, rate float64) func() bool {
	if rate == 0 {
		return func() bool { return running.Err() == nil }
	}
	ticks := make(chan struct{})
	t.wg.Go(func() {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-running.Done():
				return
			}
			select {
			case ticks <- struct{}{}:
			default: // all are busy
			}
		}
	})
	return func() bool {
		select {
		case <-ticks:
			return running.Err() == nil
		case <-running.Done():
			return false
		}
	}
}

// one sends one request and books it. With a beginning it is that of its prompt.
func (t *Traffic) one(client *http.Client, f *Form, beginning string) {
	t.gate.RLock()
	defer t.gate.RUnlock()
	n := int(t.begun.Add(1))
	build := func() (load.Request, error) { return f.Body(t.options.Seed, n) }
	if beginning != "" {
		build = func() (load.Request, error) { return f.alike(beginning, n) }
	}
	q := &Sent{Form: f, ID: fmt.Sprintf("%s-%d", t.options.Name, n), body: func() ([]byte, error) {
		r, err := build()
		return r.Body, err
	}}
	if r, err := build(); err != nil {
		q.Outcome = err.Error()
	} else {
		t.send(t.ctx, client, q, r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = append(t.done, q)
}

// Burst sends n requests of one beginning at the same time, over connections of
// their own. It returns at once; over is closed when all have ended.
func (t *Traffic) Burst(n int, f *Form, beginning string) (over <-chan struct{}) {
	done := make(chan struct{})
	var all sync.WaitGroup
	client := newClient(true)
	for range n {
		all.Go(func() { t.one(client, f, beginning) })
	}
	go func() {
		defer close(done)
		all.Wait()
		client.CloseIdleConnections()
	}()
	return done
}

// Pause lets no further request begin, and waits for those that run.
func (t *Traffic) Pause() { t.gate.Lock() }

// Resume ends a pause.
func (t *Traffic) Resume() { t.gate.Unlock() }

// Stop lets the clients end what they do, and waits for it. Bursts may follow.
func (t *Traffic) Stop() {
	t.stop()
	t.wg.Wait()
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}

// Sent returns the requests that have ended.
func (t *Traffic) Sent() []*Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*Sent(nil), t.done...)
}

// Ended is the number of requests that have ended.
func (t *Traffic) Ended() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.done)
}

// Underway is how many uploads and streams are in the middle.
func (t *Traffic) Underway() (uploads, streams int64) { return t.uploading.Load(), t.streaming.Load() }
