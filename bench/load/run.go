package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Load says how fast requests are sent; exactly one of Concurrency, Rate and
// Times is set.
type Load struct {
	// Concurrency is a closed loop: so many requests in flight, the next one
	// sent when one ends.
	Concurrency int
	// Rate is an open loop: requests a second at random times (Poisson), whether
	// or not the earlier ones have ended. Latencies count from the planned moment.
	Rate float64
	// Times is an open loop with the planned moments of a trace, after the
	// beginning, in ascending order, one for each request.
	Times []time.Duration
	// Seed makes the random times of Rate.
	Seed uint64

	// Count is the number of requests to send, the list again from its beginning
	// when it is over; 0 sends each once, or as many as Duration has room for.
	Count int
	// Duration ends the sending; 0 is no limit. What is in flight then ends by
	// itself.
	Duration time.Duration

	// Observe is called with each outcome when it is known, one at a time. It may
	// be nil.
	Observe func(Outcome)
}

func (l Load) validate(requests int) error {
	set := 0
	for _, is := range []bool{l.Concurrency > 0, l.Rate > 0, l.Times != nil} {
		if is {
			set++
		}
	}
	if set != 1 || l.Concurrency < 0 || l.Rate < 0 || l.Count < 0 || l.Duration < 0 {
		return fmt.Errorf("load with concurrency %d, rate %v, %d times, count %d, duration %v: want one of the first three, nothing below 0",
			l.Concurrency, l.Rate, len(l.Times), l.Count, l.Duration)
	}
	if requests == 0 {
		return fmt.Errorf("load without requests")
	}
	if n := l.count(requests); l.Times != nil && n != len(l.Times) {
		return fmt.Errorf("load with %d times: want one for each of %d requests", len(l.Times), n)
	}
	return nil
}

// count is the number of requests to send, if the time is enough.
func (l Load) count(requests int) int {
	switch {
	case l.Count > 0:
		return l.Count
	case l.Duration > 0 && l.Times == nil:
		const endless = 1 << 62
		return endless
	default:
		return requests
	}
}

// Run sends the requests in their order and waits for all answers. When ctx
// ends, it stops sending, cancels what is in flight and returns what it has
// measured together with the context's error.
func Run(ctx context.Context, sender Sender, requests []Request, load Load) (*Result, error) {
	if err := load.validate(len(requests)); err != nil {
		return nil, err
	}
	r := runner{ctx: ctx, sender: sender, load: load, requests: requests, result: NewResult(), begin: time.Now()}
	if load.Concurrency > 0 {
		r.closedLoop()
	} else {
		r.openLoop()
	}
	r.running.Wait()
	r.result.Elapsed = time.Since(r.begin)
	return r.result, ctx.Err()
}

type runner struct {
	ctx      context.Context
	sender   Sender
	load     Load
	requests []Request
	begin    time.Time
	running  sync.WaitGroup

	mu     sync.Mutex
	result *Result
}

// send sends request number i, which was to be sent at begin.
func (r *runner) send(i int, begin time.Time) {
	o := r.sender.Send(r.ctx, &r.requests[i%len(r.requests)], begin)
	o.Start = begin.Sub(r.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Add(o)
	if r.load.Observe != nil {
		r.load.Observe(o)
	}
}

// over tells whether a request planned for that moment is beyond the time.
func (r *runner) over(planned time.Time) bool {
	return r.ctx.Err() != nil || r.load.Duration > 0 && planned.Sub(r.begin) > r.load.Duration
}

func (r *runner) closedLoop() {
	n := r.load.count(len(r.requests))
	var next atomic.Int64
	for range min(r.load.Concurrency, n) {
		r.running.Go(func() {
			for {
				i, now := int(next.Add(1)-1), time.Now()
				if i >= n || r.over(now) {
					return
				}
				r.send(i, now)
			}
		})
	}
}

func (r *runner) openLoop() {
	n := r.load.count(len(r.requests))
	random := newRandom(r.load.Seed)
	due := r.begin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		if r.load.Times != nil {
			due = r.begin.Add(r.load.Times[i])
		} else {
			due = due.Add(time.Duration(random.ExpFloat64() / r.load.Rate * float64(time.Second)))
		}
		if r.over(due) {
			return
		}
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
			planned := due
			r.running.Go(func() { r.send(i, planned) })
		case <-r.ctx.Done():
			return
		}
	}
}
