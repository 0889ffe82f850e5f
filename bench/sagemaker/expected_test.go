package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
)

// replayed is the hit rate when request i goes to replica to(i), each with a cache
// like the real one's. It is the twin of expectedHitRate.
func replayed(t *rapid.T, prompts []engine.Prompt, n int, to func(i int) int) float64 {
	params := engine.Llama70B()
	params.KVTokens = 1 << 16
	engines := make([]*engine.Scheduler, n)
	for i := range engines {
		var err error
		if engines[i], err = engine.NewScheduler(params); err != nil {
			t.Fatal(err)
		}
	}
	tokens, hit := 0, 0
	for i, p := range prompts {
		tokens += p.Tokens
		hit += engines[to(i)].Cached(p)
		engines[to(i)].Store(p)
	}
	return float64(hit) / float64(tokens)
}

// With two replicas all ways to spread the requests can be tried: their mean is the
// expectation.
func TestExpectedHitRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := load.Conversations{
			Count: rapid.IntRange(1, 2).Draw(t, "conversations"), Turns: rapid.IntRange(1, 3).Draw(t, "turns"),
			UserChars: rapid.IntRange(16, 200).Draw(t, "user"), AnswerChars: rapid.IntRange(16, 200).Draw(t, "answer"),
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		api := rapid.SampledFrom([]load.API{load.Chat, load.Completions, load.Invoke}).Draw(t, "api")
		said, err := c.Prompts()
		if err != nil {
			t.Fatal(err)
		}
		requests, err := load.Kind{API: api}.Requests(said)
		if err != nil {
			t.Fatal(err)
		}
		prompts := make([]engine.Prompt, len(requests))
		for i, q := range requests {
			if prompts[i], err = replica.PromptOf(q.Body, blockTokens); err != nil {
				t.Fatal(err)
			}
		}
		check := func(n int, want float64) {
			got, err := expectedHitRate(requests, n, blockTokens)
			if err != nil || math.Abs(got-want) > 1e-9 {
				t.Errorf("%d replicas: %.6f, error %v; replayed %.6f", n, got, err, want)
			}
		}
		check(1, replayed(t, prompts, 1, func(int) int { return 0 }))
		mean, ways := 0.0, 1<<len(prompts)
		for way := range ways {
			mean += replayed(t, prompts, 2, func(i int) int { return way >> i & 1 }) / float64(ways)
		}
		check(2, mean)
	})
}

// An engine computes the last token even of a prompt that it knows.
func TestExpectedHitRateOfEqualPrompts(t *testing.T) {
	q := load.Request{Body: []byte(`{"inputs": "0123456789012345678901234567890123456789012345678901234567890123"}`)}
	if got, err := expectedHitRate([]load.Request{q, q}, 1, 16); err != nil || got != 0 {
		t.Errorf("one block of 16 tokens: %v, error %v", got, err)
	}
	want := (1./7 + 13./49) / 2 / 3
	if got, err := expectedHitRate([]load.Request{q, q, q}, 7, 8); err != nil || math.Abs(got-want) > 1e-9 {
		t.Errorf("two blocks of 8 tokens, the first of which counts: %v, error %v, want %v", got, err, want)
	}
	if _, err := expectedHitRate([]load.Request{{Body: []byte("no")}}, 7, 16); err == nil {
		t.Error("a body without a prompt has a hit rate")
	}
}
