package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// round is what was measured in one round.
type round struct {
	// groups are in the order of the configurations.
	groups []group
	alone  *load.Result
}

// group is a configuration in one round: all its strategies had the same requests,
// at the same times in an open loop.
type group struct {
	// ceiling and atRandom are hit rates, computed from the prompts.
	ceiling, atRandom float64
	results           []*load.Result // in the order of the configuration's strategies
}

// measure runs all rounds. Each has other texts and other times, made by the seed
// and its number. When ctx ends it returns the complete ones.
func (s *system) measure(ctx context.Context, configurations []configuration, seed uint64, progress io.Writer) (rounds []round, err error) {
	begin := time.Now()
	if err := s.warmUp(ctx, configurations[0], seed); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	order := rand.New(rand.NewPCG(seed, 1))
	for n := range s.scale.rounds {
		var r round
		for _, c := range configurations {
			g, err := s.group(ctx, c, seed+uint64(n), order)
			if err != nil {
				return rounds, fmt.Errorf("%v: %w", c, err)
			}
			r.groups = append(r.groups, g)
			fmt.Fprintf(progress, "%v: round %d, %v\n", time.Since(begin).Round(time.Second), n+1, c)
		}
		if r.alone, err = s.alone(ctx, seed+uint64(n)); err != nil {
			return rounds, fmt.Errorf("requests one at a time: %w", err)
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

// warmUp opens connections and lets heaps grow.
func (s *system) warmUp(ctx context.Context, c configuration, seed uint64) error {
	requests, err := c.requests(seed)
	if err != nil {
		return err
	}
	_, err = load.Run(ctx, s.sender, requests[:min(len(requests), 56)], load.Load{Concurrency: 28})
	return err
}

// group measures the strategies of a configuration one after the other, in a
// random order, each with empty caches.
func (s *system) group(ctx context.Context, c configuration, seed uint64, order *rand.Rand) (group, error) {
	g := group{results: make([]*load.Result, len(c.strategies))}
	requests, err := c.requests(seed)
	if err != nil {
		return g, err
	}
	if g.ceiling, err = expectedHitRate(requests, 1, blockTokens); err != nil {
		return g, err
	}
	if g.atRandom, err = expectedHitRate(requests, instances, blockTokens); err != nil {
		return g, err
	}
	for _, i := range order.Perm(len(c.strategies)) {
		if err := s.use(ctx, c.strategies[i], c.Workload.PrefixLength); err != nil {
			return g, err
		}
		runtime.GC() // of client and replicas, so that it does not fall into the measurement
		if g.results[i], err = load.Run(ctx, s.sender, requests, c.load(s.scale.timeScale, seed)); err != nil {
			return g, err
		}
	}
	return g, nil
}

// alone sends long prompts one at a time to replicas that take no time: what is
// measured then is what Envoy, warmpath and this machine add.
func (s *system) alone(ctx context.Context, seed uint64) (*load.Result, error) {
	c := configuration{Workload: s.scale.long(), API: load.Chat, Stream: true}
	requests, err := c.requests(seed)
	if err != nil {
		return nil, err
	}
	if err := s.use(ctx, aware, c.Workload.PrefixLength); err != nil {
		return nil, err
	}
	client := s.atOnce()
	defer client.Close()
	return load.Run(ctx, client, requests, load.Load{Concurrency: 1, Count: s.scale.alone})
}

// shares sends many different prefixes once each and returns how they spread.
func (s *system) shares(ctx context.Context, seed uint64) (load.Summary, error) {
	w := s.scale.short()
	prompts, err := load.Shared{
		Prefixes: s.scale.prefixes, Uses: 1, PrefixChars: w.PrefixLength, SuffixChars: questionTokens, Seed: seed,
	}.Prompts()
	if err != nil {
		return load.Summary{}, err
	}
	requests, err := load.Kind{API: load.Chat, Model: "llama-70b"}.Requests(prompts)
	if err != nil {
		return load.Summary{}, err
	}
	if err := s.use(ctx, aware, w.PrefixLength); err != nil {
		return load.Summary{}, err
	}
	client := s.atOnce()
	defer client.Close()
	result, err := load.Run(ctx, client, requests, load.Load{Concurrency: 8})
	if err != nil {
		return load.Summary{}, fmt.Errorf("different prefixes: %w", err)
	}
	return result.Summary(), nil
}
