package sim

import (
	"slices"
	"time"
)

// Result is what came of a run.
type Result struct {
	Requests int
	// PromptTokens of all prompts, HitTokens of them found in caches.
	PromptTokens, HitTokens int64
	// TTFT are the times to the first token, sorted.
	TTFT []time.Duration
	// Elapsed is from the first arrival to the last token; OutputTokens are those
	// of all answers.
	Elapsed      time.Duration
	OutputTokens int64
	// Shares are each replica's requests and prefilled tokens.
	Shares []Share
	// Overflowed requests were not given to their home, Moved ones had another home
	// than the same key before.
	Overflowed, Keyed, Moved int
	// Windows are the hits over time.
	Windows []Window
}

// Share is the part of one replica.
type Share struct{ Requests, Prefill int64 }

// Window is a part of the run's time.
type Window struct{ Prompt, Hit int64 }

// HitRate is the share of prompt tokens found in caches, 0 to 1.
func (r *Result) HitRate() float64 { return float64(r.HitTokens) / float64(max(r.PromptTokens, 1)) }

// Quantile returns a quantile of the times to the first token.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.TTFT) == 0 {
		return 0
	}
	return r.TTFT[min(int(q*float64(len(r.TTFT))), len(r.TTFT)-1)]
}

// Busiest returns what the busiest replica has over the mean.
func (r *Result) Busiest(of func(Share) int64) float64 {
	var most, sum int64
	for _, s := range r.Shares {
		most, sum = max(most, of(s)), sum+of(s)
	}
	if sum == 0 {
		return 1
	}
	return float64(most) * float64(len(r.Shares)) / float64(sum)
}

func (r *Result) sort() { slices.Sort(r.TTFT) }
