package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// arrival is a request of the long workload at a replica.
type arrival struct {
	at      time.Duration
	request *engine.Request
}

// spreadOut sends the long workload at a rate to replicas chosen by to.
func spreadOut(rate float64, seed uint64, to func(random *rand.Rand, document int) int) [][]arrival {
	s := full()
	random := rand.New(rand.NewPCG(seed, 1))
	replicas := make([][]arrival, instances)
	at := time.Duration(0)
	for i := range s.documents * 53 / 10 {
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		document := random.IntN(s.documents)
		r := &engine.Request{PromptTokens: documentTokens + questionTokens, OutputTokens: s.longAnswer}
		for b := range documentTokens / blockTokens {
			r.Blocks = append(r.Blocks, uint64(document)<<32|uint64(b))
		}
		for b := range questionTokens / blockTokens {
			r.Blocks = append(r.Blocks, uint64(i+1)<<48|uint64(b))
		}
		n := to(random, document)
		replicas[n] = append(replicas[n], arrival{at, r})
	}
	return replicas
}

// firstTokens runs a replica in virtual time and returns the times to first token.
func firstTokens(t *testing.T, arrivals []arrival) (times []time.Duration) {
	t.Helper()
	params := engine.Llama70B()
	s, err := engine.NewScheduler(params)
	if err != nil {
		t.Fatal(err)
	}
	begun := make(map[*engine.Request]time.Duration)
	for now := time.Duration(0); ; {
		for len(arrivals) > 0 && arrivals[0].at+params.FrontEnd <= now {
			begun[arrivals[0].request] = arrivals[0].at
			if err := s.Submit(arrivals[0].request); err != nil {
				t.Fatal(err)
			}
			arrivals = arrivals[1:]
		}
		step, busy := s.Begin(0)
		switch {
		case busy:
			now += step
			for _, r := range s.End().First {
				times = append(times, now-begun[r])
			}
		case len(arrivals) > 0:
			now = arrivals[0].at + params.FrontEnd
		default:
			return times
		}
	}
}

// p90 is that of all requests of several seeds: one seed has too few that queue.
func p90(t *testing.T, rate float64, to func(random *rand.Rand, document int) int) time.Duration {
	t.Helper()
	var times []time.Duration
	for seed := range uint64(9) {
		for _, arrivals := range spreadOut(rate, seed, to) {
			times = append(times, firstTokens(t, arrivals)...)
		}
	}
	slices.Sort(times)
	return times[len(times)*9/10]
}

// The P90 is the time of a miss with every strategy: what routing by prefix takes
// off it is the queue. At the rate of the full form RANDOM's begins, at a third of
// it there is none, and a little above lies the published change. The times are
// computed in virtual time, without a gateway: they are the same on every machine.
func TestRateIsWhereRandomQueues(t *testing.T) {
	anywhere := func(random *rand.Rand, _ int) int { return random.IntN(instances) }
	home := func(_ *rand.Rand, document int) int { return document % instances }
	changeAt := func(rate float64) float64 {
		atRandom, byPrefix := p90(t, rate, anywhere), p90(t, rate, home)
		change := 100 * (float64(byPrefix)/float64(atRandom) - 1)
		t.Logf("%.1f requests/s: P90 %v at random, %v by prefix, %+.0f %%",
			rate, atRandom.Round(time.Millisecond), byPrefix.Round(time.Millisecond), change)
		return change
	}
	if c := changeAt(full().longRate / 3); c < -10 {
		t.Errorf("at a third of the rate %.0f %%: want no queue", c)
	}
	if c := changeAt(full().longRate); c > -10 {
		t.Errorf("at the rate %.0f %%: want the beginning of a queue", c)
	}
	least := full().configurations()[0].published.P90[0] // of the published changes
	if c := changeAt(1.5 * full().longRate); c > least {
		t.Errorf("at one and a half times the rate %.0f %%: want more than the published %v %%", c, least)
	}
	changeAt(4)
}
