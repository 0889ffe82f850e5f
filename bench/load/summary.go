package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Summary are the figures of a run. Those of time, tokens and shares leave
// failed requests out.
type Summary struct {
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	// Errors counts the failed requests by reason.
	Errors map[string]int `json:"errors"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// HitRate is cached / prompt tokens, 0..1.
	HitRate float64 `json:"hit_rate"`
	// TTFT is of streams only.
	TTFT    Quantiles `json:"ttft"`
	Latency Quantiles `json:"latency"`
	// RequestsPerSecond and OutputTokensPerSecond count answers that ended well.
	RequestsPerSecond     float64 `json:"requests_per_second"`
	OutputTokensPerSecond float64 `json:"output_tokens_per_second"`
	// Shares are the replicas that served, by name.
	Shares []Share `json:"shares"`
	// BusiestOverMean is the largest share over the mean of those that served.
	BusiestOverMean float64 `json:"busiest_over_mean"`
}

// Share is one replica's part of a run.
type Share struct {
	Replica  string  `json:"replica"`
	Requests int     `json:"requests"`
	Fraction float64 `json:"fraction"` // of all requests that were served, 0..1
	HitRate  float64 `json:"hit_rate"`
}

// Quantiles are those of a time, to three digits; 0 of nothing.
type Quantiles struct {
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
}

// Markdown is a table of the times and a line of each other figure.
func (s Summary) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests in %.1f s, %d failed, %.1f requests/s, %.0f output tokens/s.\n",
		s.Requests, s.Seconds, s.Failed, s.RequestsPerSecond, s.OutputTokensPerSecond)
	fmt.Fprintf(&b, "KV cache hit rate %.1f %%, busiest replica %.2f times the mean.\n", 100*s.HitRate, s.BusiestOverMean)
	for _, reason := range slices.Sorted(maps.Keys(s.Errors)) {
		fmt.Fprintf(&b, "Failed %d times: %s.\n", s.Errors[reason], reason)
	}
	b.WriteString("\n| time in ms | P50 | P90 | P99 | P99.9 |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   Quantiles
	}{{"first content", s.TTFT}, {"whole answer", s.Latency}} {
		if row.of == (Quantiles{}) {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.name,
			milliseconds(row.of.P50), milliseconds(row.of.P90), milliseconds(row.of.P99), milliseconds(row.of.P999))
	}
	b.WriteString("\n| replica | requests | share | hit rate |\n|---|---|---|---|\n")
	for _, share := range s.Shares {
		fmt.Fprintf(&b, "| %s | %d | %.1f %% | %.1f %% |\n", share.Replica, share.Requests, 100*share.Fraction, 100*share.HitRate)
	}
	return b.String()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
}
