package trace

import (
	"slices"
	"time"
)

// Stats sum up a trace.
type Stats struct {
	Requests int
	// Span is the time from the first to the last arrival.
	Span time.Duration
	// Input and Output are the distributions of the lengths in tokens.
	Input, Output Quantiles
	// InputTokens are those of all prompts. HitTokens are those of them that one
	// cache without a bound would have: the chunks that a request shares with any
	// before it.
	InputTokens, HitTokens int64
	// First is the number of different first chunks, Sessions that of sessions.
	First, Sessions int
}

// Ideal is the largest share of the input that a cache can have, 0 to 1, as far
// as chunks tell: what is shared beyond the last whole chunk is not in it.
func (s Stats) Ideal() float64 {
	if s.InputTokens == 0 {
		return 0
	}
	return float64(s.HitTokens) / float64(s.InputTokens)
}

// Quantiles of a distribution of n values: those of rank 0.5, 0.9 and 0.99 times n,
// rounded down and counted from 0.
type Quantiles struct{ P50, P90, P99 int }

// Stats computes the statistics of a trace.
func (t Trace) Stats() Stats {
	s := Stats{Requests: len(t.Requests)}
	seen, first, sessions := make(map[uint64]struct{}), make(map[uint64]struct{}), make(map[string]struct{})
	var input, output []int
	for _, r := range t.Requests {
		s.Span = r.Arrival
		input, output = append(input, r.Input), append(output, r.Output)
		s.InputTokens += int64(r.Input)
		s.HitTokens += int64(ChunkTokens * known(seen, r.Chunks))
		if len(r.Chunks) > 0 {
			first[r.Chunks[0]] = struct{}{}
		}
		if r.Session != "" {
			sessions[r.Session] = struct{}{}
		}
	}
	s.Input, s.Output = quantiles(input), quantiles(output)
	s.First, s.Sessions = len(first), len(sessions)
	return s
}

// known returns how many chunks a cache has, and adds the others.
func known(cache map[uint64]struct{}, chunks []uint64) (n int) {
	for _, c := range chunks {
		if _, ok := cache[c]; !ok {
			break
		}
		n++
	}
	for _, c := range chunks[n:] {
		cache[c] = struct{}{}
	}
	return n
}

func quantiles(values []int) Quantiles {
	if len(values) == 0 {
		return Quantiles{}
	}
	slices.Sort(values)
	at := func(share float64) int { return values[int(share*float64(len(values)))] }
	return Quantiles{P50: at(0.50), P90: at(0.90), P99: at(0.99)}
}
