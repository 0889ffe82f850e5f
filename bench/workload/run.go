package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Load says how fast requests are sent; exactly one field is set.
type Load struct {
	// Concurrency is a closed loop: so many requests in flight, the next one
	// sent when one ends.
	Concurrency int
	// Rate is an open loop: requests a second at random times (Poisson), whether
	// or not the earlier ones have ended. Times count from the planned moment.
	Rate float64
	// Seed makes the random times of Rate.
	Seed uint64
}

func (l Load) validate() error {
	closed, open := l.Concurrency > 0, l.Rate > 0
	if closed == open || l.Concurrency < 0 || l.Rate < 0 {
		return fmt.Errorf("load with concurrency %d and rate %v: want one of them above 0", l.Concurrency, l.Rate)
	}
	return nil
}

// Run sends the requests in their order and waits for all answers. When ctx
// ends, it stops sending, cancels what is in flight and returns what it has
// measured together with the context's error.
func Run(ctx context.Context, c *Client, requests []Request, load Load) (Result, error) {
	if err := load.validate(); err != nil {
		return Result{}, err
	}
	r := runner{ctx: ctx, client: c, begin: time.Now()}
	if load.Concurrency > 0 {
		r.closedLoop(requests, load.Concurrency)
	} else {
		r.openLoop(requests, load)
	}
	r.running.Wait()
	return Result{Outcomes: r.outcomes, Elapsed: time.Since(r.begin)}, ctx.Err()
}

type runner struct {
	ctx     context.Context
	client  *Client
	begin   time.Time
	running sync.WaitGroup

	mu       sync.Mutex
	outcomes []Outcome
}

func (r *runner) send(q Request, begin time.Time) {
	o := r.client.do(r.ctx, q, begin)
	o.Start = begin.Sub(r.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, o)
}

func (r *runner) closedLoop(requests []Request, concurrency int) {
	next := make(chan Request)
	for range min(concurrency, len(requests)) {
		r.running.Go(func() {
			for q := range next {
				r.send(q, time.Now())
			}
		})
	}
	defer close(next)
	for _, q := range requests {
		select {
		case next <- q:
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *runner) openLoop(requests []Request, load Load) {
	random := rand.New(rand.NewPCG(load.Seed, 0))
	due := r.begin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, q := range requests {
		due = due.Add(time.Duration(random.ExpFloat64() / load.Rate * float64(time.Second)))
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
			planned := due
			r.running.Go(func() { r.send(q, planned) })
		case <-r.ctx.Done():
			return
		}
	}
}
