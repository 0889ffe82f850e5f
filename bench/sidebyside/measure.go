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

// plan says what is measured, and how long.
type plan struct {
	sizes []int // of the bodies, in bytes
	// requests are sent one after the other, for the latency.
	requests int
	// saturation is how long as many connections as there are send at once, for
	// throughput and processor time.
	saturation time.Duration
	rounds     int           // at most; 0 is as many as there is time for
	duration   time.Duration // of all rounds; 0 is no limit
	seed       uint64
}

// connections is how many requests are in flight at saturation.
const connections = 16

// bodies is how many different ones there are of a case, so that keys spread over
// the endpoints.
const bodies = 16

// testCase is a kind of request.
type testCase struct {
	Bytes int `json:"bytes"`
	// ModelLast puts the model behind the messages: then a router cannot stop
	// reading when it has the text that it needs.
	ModelLast bool `json:"model_last"`
	requests  []load.Request
}

func (c testCase) String() string {
	where := "before"
	if c.ModelLast {
		where = "after"
	}
	return fmt.Sprintf("%s, model %s messages", size(c.Bytes), where)
}

// size is a number of bytes in words.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

func (p plan) cases() ([]testCase, error) {
	var cases []testCase
	for _, bytes := range p.sizes {
		for _, last := range []bool{false, true} {
			kind := load.Kind{API: load.Chat, Model: model, ModelLast: last, OutputTokens: 1}
			requests, err := kind.Sized(bytes, bodies, p.seed)
			if err != nil {
				return nil, err
			}
			cases = append(cases, testCase{Bytes: bytes, ModelLast: last, requests: requests})
		}
	}
	return cases, nil
}

// sample is what one arm showed for one case in one round.
type sample struct {
	alone *load.Result // one request at a time
	busy  *load.Result // at saturation
	spent spent        // at saturation
}

// rounds are the samples of each round, by case and arm, in the order of both.
type rounds [][][]sample

// measure goes through all cases and arms round by round, so that whatever else
// the machine does hits all arms alike. When the time is over or ctx ends it
// returns the rounds that are complete.
func (s *system) measure(ctx context.Context, p plan, cases []testCase, progress io.Writer) (all rounds, err error) {
	random := newOrder(p.seed)
	if _, err := s.round(ctx, p.warmUp(), cases, random); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	begin := time.Now()
	for p.rounds == 0 || len(all) < p.rounds {
		elapsed := time.Since(begin)
		if n := len(all); n > 0 && p.duration > 0 && elapsed+elapsed/time.Duration(n) > p.duration {
			break // another one would take too long
		}
		round, err := s.round(ctx, p, cases, random)
		if err != nil {
			return all, err
		}
		all = append(all, round)
		fmt.Fprintf(progress, "round %d ended after %v, %d requests failed\n", len(all), time.Since(begin).Round(time.Second), failures(round))
	}
	return all, nil
}

// newOrder is the source of the order of the arms.
func newOrder(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// warmUp is a short round that does not count: it opens connections and lets
// buffers and heaps grow.
func (p plan) warmUp() plan {
	p.requests, p.saturation = min(p.requests, 50), min(p.saturation, 200*time.Millisecond)
	return p
}

// visits is how often a round visits every arm with each case. What is slow for
// less than a round hits all arms too.
const visits = 4

func (s *system) round(ctx context.Context, p plan, cases []testCase, random *rand.Rand) ([][]sample, error) {
	round := make([][]sample, len(cases))
	for i, c := range cases {
		round[i] = make([]sample, len(s.arms))
		for n := range s.arms {
			round[i][n] = sample{alone: load.NewResult(), busy: load.NewResult()}
		}
		for range visits {
			for _, n := range random.Perm(len(s.arms)) {
				if err := s.visit(ctx, p, c, s.arms[n], &round[i][n]); err != nil {
					return nil, fmt.Errorf("%s, %v: %w", s.arms[n].name, c, err)
				}
			}
		}
	}
	return round, nil
}

// visit measures a slice of one arm with one case and adds it to the sample.
func (s *system) visit(ctx context.Context, p plan, c testCase, r *running, sum *sample) error {
	runtime.GC() // of the client, so that it does not fall into the measurement
	// The other arms have had the processor's caches meanwhile.
	if _, err := load.Run(ctx, r.sender, c.requests, load.Load{Concurrency: 1, Count: connections / 2}); err != nil {
		return err
	}
	alone, err := load.Run(ctx, r.sender, c.requests, load.Load{Concurrency: 1, Count: (p.requests + visits - 1) / visits})
	if err != nil {
		return err
	}
	before, err := s.spentSoFar(r)
	if err != nil {
		return err
	}
	busy, err := load.Run(ctx, r.sender, c.requests, load.Load{Concurrency: connections, Duration: p.saturation / visits})
	if err != nil {
		return err
	}
	after, err := s.spentSoFar(r)
	if err != nil {
		return err
	}
	sum.alone.Merge(alone)
	sum.busy.Merge(busy)
	sum.spent.envoy += after.envoy - before.envoy
	sum.spent.router += after.router - before.router
	sum.spent.client += after.client - before.client
	return nil
}

func failures(round [][]sample) (sum int) {
	for _, arms := range round {
		for _, s := range arms {
			sum += s.alone.Summary().Failed + s.busy.Summary().Failed
		}
	}
	return sum
}
