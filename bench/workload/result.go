package workload

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Outcome is what one request met.
type Outcome struct {
	Prefix int
	// Start is when it was sent, or was to be sent, after the run's beginning.
	Start time.Duration
	// Status is the HTTP status, 0 when no response came.
	Status int
	// Replica is who served, by the x-replica response header.
	Replica string
	// TTFT is the time to the first content, 0 when none came.
	TTFT time.Duration
	// Latency is the time to the end, of whatever kind.
	Latency time.Duration
	// The tokens as the server's usage reports them.
	PromptTokens, CachedTokens, OutputTokens int
	// Err is empty for an answer that came to its end.
	Err string
}

// Result is a finished run. The outcomes are in the order of their ends.
type Result struct {
	Outcomes []Outcome
	Elapsed  time.Duration
}

// Summary are the figures of a run. Those of time, tokens and shares leave
// failed requests out.
type Summary struct {
	Requests, Failed int
	// Errors counts the failed requests by reason.
	Errors map[string]int
	// HitRate is cached / prompt tokens, 0..1.
	HitRate float64
	TTFT    Quantiles
	Latency Quantiles
	// RequestsPerSecond and OutputTokensPerSecond count answers that ended well.
	RequestsPerSecond     float64
	OutputTokensPerSecond float64
	// Shares are the replicas that served, by name.
	Shares []Share
	// BusiestOverMean is the largest share over the mean of those that served.
	BusiestOverMean float64
}

// Share is one replica's part of a run.
type Share struct {
	Replica  string
	Requests int
	// Fraction of all requests that were answered, 0..1.
	Fraction float64
	HitRate  float64
}

// Quantiles of a duration, by nearest rank.
type Quantiles struct{ P50, P90, P99 time.Duration }

// Summary computes the figures.
func (r Result) Summary() Summary {
	s := Summary{Requests: len(r.Outcomes), Errors: make(map[string]int)}
	var ok []Outcome
	for _, o := range r.Outcomes {
		if o.Err != "" {
			s.Errors[o.Err]++
			continue
		}
		ok = append(ok, o)
	}
	s.Failed = len(r.Outcomes) - len(ok)
	s.HitRate = hitRate(ok)
	s.TTFT = quantiles(ok, func(o Outcome) time.Duration { return o.TTFT })
	s.Latency = quantiles(ok, func(o Outcome) time.Duration { return o.Latency })
	s.Shares = shares(ok)
	if len(ok) == 0 {
		return s
	}
	if seconds := r.Elapsed.Seconds(); seconds > 0 {
		s.RequestsPerSecond = float64(len(ok)) / seconds
		s.OutputTokensPerSecond = float64(sum(ok, func(o Outcome) int { return o.OutputTokens })) / seconds
	}
	busiest := slices.MaxFunc(s.Shares, func(a, b Share) int { return cmp.Compare(a.Requests, b.Requests) })
	s.BusiestOverMean = busiest.Fraction * float64(len(s.Shares))
	return s
}

func shares(outcomes []Outcome) []Share {
	byReplica := make(map[string][]Outcome)
	for _, o := range outcomes {
		byReplica[o.Replica] = append(byReplica[o.Replica], o)
	}
	shares := make([]Share, 0, len(byReplica))
	for name, of := range byReplica {
		shares = append(shares, Share{
			Replica: name, Requests: len(of), HitRate: hitRate(of),
			Fraction: float64(len(of)) / float64(len(outcomes)),
		})
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Replica, b.Replica) })
	return shares
}

func hitRate(outcomes []Outcome) float64 {
	prompt := sum(outcomes, func(o Outcome) int { return o.PromptTokens })
	if prompt == 0 {
		return 0
	}
	return float64(sum(outcomes, func(o Outcome) int { return o.CachedTokens })) / float64(prompt)
}

func sum(outcomes []Outcome, value func(Outcome) int) (total int) {
	for _, o := range outcomes {
		total += value(o)
	}
	return total
}

func quantiles(outcomes []Outcome, value func(Outcome) time.Duration) Quantiles {
	sorted := make([]time.Duration, 0, len(outcomes))
	for _, o := range outcomes {
		sorted = append(sorted, value(o))
	}
	slices.Sort(sorted)
	return Quantiles{P50: rank(sorted, 0.50), P90: rank(sorted, 0.90), P99: rank(sorted, 0.99)}
}

// rank is the smallest value that at least the fraction q of all does not exceed.
func rank(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// String is a few lines for people.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "requests %d, failed %d, %.1f/s, %.0f output tokens/s\n",
		s.Requests, s.Failed, s.RequestsPerSecond, s.OutputTokensPerSecond)
	fmt.Fprintf(&b, "hit rate %.1f %%, busiest/mean %.2f\n", 100*s.HitRate, s.BusiestOverMean)
	fmt.Fprintf(&b, "time to first token P50 %v, P90 %v, P99 %v\n",
		s.TTFT.P50.Round(100*time.Microsecond), s.TTFT.P90.Round(100*time.Microsecond), s.TTFT.P99.Round(100*time.Microsecond))
	for _, share := range s.Shares {
		fmt.Fprintf(&b, "  %-22s %5.1f %% of requests, hit rate %5.1f %%\n", share.Replica, 100*share.Fraction, 100*share.HitRate)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Errors)) {
		fmt.Fprintf(&b, "  error %s: %d\n", reason, s.Errors[reason])
	}
	return b.String()
}
