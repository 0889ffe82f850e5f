package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
)

// scenario is one thing that goes wrong.
type scenario struct {
	name string
	// brief scenarios are in the short form too, lasting ones in the soak: they let
	// warmpath live.
	brief, lasting bool
	// clients are further clients, besides the mixed traffic.
	clients []traffic.Group
	// act does it, and puts everything right again in the end.
	act func(context.Context, *round) error
	// excuse says why a request may end as it did, "" if it may not. nil excuses
	// nothing.
	excuse func(*round, *traffic.Sent) string
	// attempts is how many replicas may get one request; 0 is one.
	attempts int
	// recording is on.
	recording bool
}

// strategies take turns, round by round.
var strategies = []stack.Config{
	{Strategy: "PREFIX_AWARE", PrefixLength: 1024},
	{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength},
	{Strategy: "KV_AWARE"},
	{Strategy: "LEAST_OUTSTANDING_REQUESTS"},
	{Strategy: "RANDOM"},
}

const (
	replicas = 7
	// bound is the concurrency threshold. All clients together fill fewestReplicas
	// at most, so that a replica beyond its bound is never excused by the others
	// being full.
	bound          = 6
	fewestReplicas = 5
)

// health judges quickly, so that what comes back is used at once. In a soak failed
// requests do not count: who is taken out by them again and again is kept out for
// minutes.
const (
	health     = "health: {interval: 200ms, timeout: 1s, goodProbes: 1, slowStart: 0s, failedRequests: 5}"
	soakHealth = "health: {interval: 200ms, timeout: 1s, goodProbes: 1, slowStart: 0s, failedRequests: 0}"
)

// bounded reports whether a strategy has a bound.
func bounded(c stack.Config) bool { return c.Strategy == "PREFIX_AWARE" || c.Strategy == "KV_AWARE" }

// configure completes a strategy's configuration.
func (s *system) configure(sc *scenario, c stack.Config) stack.Config {
	c.ConcurrencyThreshold, c.DrainTimeout, c.Extra = bound, 4*time.Second, s.health
	if sc.recording {
		c.Extra += fmt.Sprintf("\nrecording: {folder: %q}", s.folder())
	}
	return c
}

// round is one scenario under one strategy.
type round struct {
	*system
	scenario *scenario
	config   stack.Config
	// number tells the rounds of a scenario apart.
	number  int
	traffic *traffic.Traffic
	random  *rand.Rand

	// windows are the times in which warmpath could not know, or say, everything.
	windows []window
	// cuts are the times in which Envoy was away.
	cuts []window
	// faulty are replicas that were made to fail.
	faulty []string
	// passed counts what Envoy did by itself before its last start, passedBefore
	// what this one had done at the beginning, and passedWithin what was done in the
	// windows.
	passed, passedBefore, passedWithin int
	// missed is what warmpath counted as gone elsewhere before its last end.
	missed float64
}

// window is a time from which on something was so, and until when.
type window struct{ begin, end time.Time }

// within reports whether a request ran in one of the windows.
func within(q *traffic.Sent, windows []window) bool {
	return slices.ContainsFunc(windows, func(w window) bool { return q.Overlaps(w.begin, w.end) })
}

// disturbed does what keeps warmpath from deciding, or from counting everything:
// then Envoy chooses by its own rule, and the bound does not hold.
func (r *round) disturbed(ctx context.Context, do func() error) error {
	begin := time.Now()
	before, err := r.passedOver(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := r.stack.AwaitSteering(ctx); err != nil {
		return err
	}
	after, err := r.passedOver(ctx)
	r.passedWithin += after - before
	r.windows = append(r.windows, window{begin, time.Now()})
	return err
}

// passedOver is how many requests Envoy has sent on by itself in this round.
func (r *round) passedOver(ctx context.Context) (int, error) {
	n, err := r.stack.PassedOver(ctx)
	return r.passed + n - r.passedBefore, err
}

// pause lets things take their course.
func (r *round) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// more waits until n further requests have ended.
func (r *round) more(ctx context.Context, n int) error {
	for target := r.traffic.Ended() + n; r.traffic.Ended() < target; {
		next := min(r.traffic.Ended()+10, target) // any wait has its limit, so a few at a time
		if err := r.stack.Await(ctx, "more requests to end", func() error {
			if now := r.traffic.Ended(); now < next {
				return fmt.Errorf("%d have ended, want %d", now, target)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// underway waits until streams and uploads are in the middle.
func (r *round) underway(ctx context.Context) error {
	return r.stack.Await(ctx, "uploads and streams", func() error {
		if uploads, streams := r.traffic.Underway(); uploads < 1 || streams < 2 {
			return fmt.Errorf("%d uploads and %d streams run", uploads, streams)
		}
		return nil
	})
}

// all is the whole membership.
func (r *round) all() []fleet.Endpoint { return stack.Endpoints(r.stack.Replicas.Addresses()...) }

// members writes a membership and waits until Envoy has it.
func (r *round) members(ctx context.Context, endpoints []fleet.Endpoint) error {
	if err := r.stack.WriteEndpoints(endpoints); err != nil {
		return err
	}
	return r.envoyHas(ctx, len(endpoints))
}

func (r *round) envoyHas(ctx context.Context, n int) error {
	return r.stack.Await(ctx, fmt.Sprintf("%d endpoints in Envoy", n), func() error { return r.stack.EnvoyKnows(ctx, n) })
}

// inOrder does one after the other until one fails.
func inOrder(do ...func() error) error {
	for _, d := range do {
		if err := d(); err != nil {
			return err
		}
	}
	return nil
}
