package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/stack"
)

// mixed is what clients send in every scenario: streams of seconds, short calls of
// which many have one beginning, and large bodies. Half the clients speak HTTP/2.
func mixed(rate float64) []traffic.Group {
	ok, teapot := []string{"200"}, []string{"418"}
	const tick = 100 * time.Millisecond
	return []traffic.Group{
		{Clients: 8, Forms: []traffic.Form{
			{Name: "stream", API: load.Chat, Size: 2 << 10, Stream: true, Tokens: 10, TokenTime: tick, Ends: ok},
			{Name: "invocation stream", API: load.Invoke, Size: 4 << 10, Stream: true, Tokens: 8, TokenTime: tick, Ends: ok},
			{Name: "long stream", API: load.Chat, Size: 2 << 10, Stream: true, Tokens: 25, TokenTime: tick, Ends: ok},
		}},
		{Clients: 13, Rate: rate, Forms: []traffic.Form{
			{Name: "call", API: load.Chat, Size: 2 << 10, Tokens: 3, TokenTime: 10 * time.Millisecond, Ends: ok},
			{Name: "invocation", API: load.Invoke, Size: 3 << 10, Tokens: 2, Ends: ok},
			{Name: "completion", API: load.Completions, Size: 2 << 10, Tokens: 2, TokenTime: 20 * time.Millisecond, Ends: ok},
			{Name: "chunked call", API: load.Chat, Size: 2 << 10, Unsized: true, Tokens: 2, Ends: ok},
			{Name: "call", API: load.Chat, Size: 8 << 10, Tokens: 2, Ends: ok},
		}},
		{Clients: 4, Rate: 6, Forms: []traffic.Form{
			{Name: "large", API: load.Chat, Size: 1 << 20, Ask: traffic.Teapot(), Ends: teapot},
			{Name: "upload", API: load.Chat, Size: 1 << 20, Parts: 8, Ask: traffic.Teapot(), Ends: teapot},
			{Name: "chunked upload", API: load.Invoke, Size: 256 << 10, Parts: 6, Unsized: true, Ask: traffic.Teapot(), Ends: teapot},
		}},
	}
}

// pace is how much is sent in a round.
type pace struct {
	requests int           // at least
	duration time.Duration // at least
	rate     float64       // of short calls, at most
}

// play is one round: the traffic runs, the scenario happens, everything comes to
// rest and is looked at.
func (s *system) play(ctx context.Context, sc *scenario, config stack.Config, number int, seed uint64, p pace) (row, error) {
	r := &round{system: s, scenario: sc, config: config, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	before, err := r.begin(ctx)
	if err != nil {
		return row{}, err
	}
	r.traffic = traffic.Start(ctx, traffic.Options{
		URL: s.stack.URL, Seed: seed, Name: fmt.Sprintf("chaos-%d", number), Groups: append(mixed(p.rate), sc.clients...),
	})
	begin := time.Now()
	err = inOrder(
		func() error { return r.more(ctx, 60) },
		func() error { return sc.act(ctx, r) },
		func() error { return r.more(ctx, max(20, p.requests-r.traffic.Ended())) },
		func() error { return r.pause(ctx, p.duration-time.Since(begin)) },
	)
	r.traffic.Stop()
	if err != nil {
		return row{}, err
	}
	still := r.bursts(ctx)
	result, err := r.verify(ctx, before)
	if still != nil {
		result.Leaked++
		result.note("%s, a burst: %v", config.Strategy, still)
	}
	return result, err
}

// begin takes the figures before a round.
func (r *round) begin(ctx context.Context) (before vitals, err error) {
	if err := r.use(ctx, r.scenario, r.config); err != nil {
		return before, err
	}
	r.stack.Replicas.ResetStats()
	if r.passedBefore, err = r.stack.PassedOver(ctx); err != nil {
		return before, err
	}
	missed, err := r.stack.Metric(ctx, "warmpath_override_missed_total")
	if err != nil {
		return before, err
	}
	r.missed = -missed
	return r.vitals(ctx)
}

// burstSize requests fill three replicas to their bound.
const burstSize = 3 * bound

// bursts checks that warmpath decides and counts as before: many requests of one
// beginning come at the same moment and stay. Where Envoy has sent one of them on by
// itself, which a busy machine makes it do, they come again.
func (r *round) bursts(ctx context.Context) error {
	held := traffic.Form{
		Name: "held stream", API: load.Chat, Stream: true, Tokens: 4, Ask: []string{"x-replica-hold", "1"}, Ends: []string{"200"},
	}
	for n := range 5 {
		passed, err := r.stack.PassedOver(ctx)
		if err != nil {
			return err
		}
		over := r.traffic.Burst(burstSize, &held, fmt.Sprintf("Burst %d of round %d.", n, r.number))
		err = r.holds(ctx)
		now, errNow := r.stack.PassedOver(ctx)
		calm := now == passed
		if err == nil && calm {
			err = r.stack.AwaitTruth(ctx)
		}
		r.stack.Replicas.Release()
		<-over
		if err = errors.Join(err, errNow); err != nil || calm {
			return err
		}
		if err := r.stack.AwaitSteering(ctx); err != nil {
			return err
		}
	}
	return errors.New("requests are sent on by Envoy itself again and again")
}

// holds waits until the replicas have the burst.
func (r *round) holds(ctx context.Context) error {
	return r.stack.Await(ctx, "the burst to arrive", func() error {
		n := 0
		for _, s := range r.stack.Replicas.Stats() {
			n += int(s.Held)
		}
		if n != burstSize {
			return fmt.Errorf("%d of %d are there", n, burstSize)
		}
		return nil
	})
}
