package main

import (
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

// row is a policy on a workload.
type row struct {
	Policy   string  `json:"policy"`
	Requests int     `json:"requests"`
	HitRate  float64 `json:"hit_rate"` // 0..1
	// The times to the first token in ms, and their mean.
	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
	P99  float64 `json:"p99_ms"`
	Mean float64 `json:"mean_ms"`
	// BusiestRequests and BusiestPrefill are the busiest replica's over the mean.
	BusiestRequests float64 `json:"busiest_over_mean_requests"`
	BusiestPrefill  float64 `json:"busiest_over_mean_prefill"`
	// OverflowShare are the requests that did not go to the home of their key,
	// MovedShare those whose key had another home before, both of the keyed ones.
	OverflowShare float64 `json:"overflow_share"`
	MovedShare    float64 `json:"moved_share"`
	// Outstanding is the mean at a replica.
	Outstanding float64 `json:"outstanding"`
	// Throughput is in output tokens a second.
	Throughput float64 `json:"output_tokens_per_second"`
	// Percentiles are the 1st to the 99th of the times to the first token in ms, where
	// a picture needs them.
	Percentiles []float64 `json:"ttft_percentiles_ms,omitempty"`

	percentiles []float64
}

// rowOf sums up the rounds of a policy: of the times the quantiles of all, of the
// busiest the mean.
func rowOf(policy string, rounds ...outcome) row {
	var all sim.Result
	v := row{Policy: policy}
	n := float64(len(rounds))
	for i := range rounds {
		r := &rounds[i].result
		all.Requests += r.Requests
		all.PromptTokens += r.PromptTokens
		all.HitTokens += r.HitTokens
		all.TTFT = append(all.TTFT, r.TTFT...)
		all.Elapsed += r.Elapsed
		all.OutputTokens += r.OutputTokens
		all.Keyed, all.Overflowed, all.Moved = all.Keyed+r.Keyed, all.Overflowed+r.Overflowed, all.Moved+r.Moved
		v.BusiestRequests += r.Busiest(func(s sim.Share) int64 { return s.Requests }) / n
		v.BusiestPrefill += r.Busiest(func(s sim.Share) int64 { return s.Prefill }) / n
		v.Outstanding += rounds[i].outstanding / n
	}
	slices.Sort(all.TTFT)
	keyed := float64(max(all.Keyed, 1))
	v.Requests, v.HitRate = all.Requests, all.HitRate()
	v.P50, v.P90, v.P99, v.Mean = ms(all.Quantile(.5)), ms(all.Quantile(.9)), ms(all.Quantile(.99)), ms(meanOf(all.TTFT))
	for p := range 99 {
		v.percentiles = append(v.percentiles, ms(all.Quantile(float64(p+1)/100)))
	}
	v.OverflowShare, v.MovedShare = float64(all.Overflowed)/keyed, float64(all.Moved)/keyed
	v.Throughput = float64(all.OutputTokens) / max(all.Elapsed.Seconds(), 1e-9)
	return v
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func meanOf(list []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(len(list), 1))
}

// tuned tells whether a policy has a fixed prefix length.
func tuned(policy string) bool { return strings.Contains(policy, ":") }

// knowing tells whether a policy knows what no router can.
func knowing(policy string) bool { return strings.HasPrefix(policy, "oracle") }

// balanced is the busiest over the mean, by requests, up to which a fixed length is
// a rival.
const balanced = 1.6

func find(rows []row, policy string) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.Policy == policy })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// bestFixed is the fixed length with the most hits of those in balance.
func bestFixed(rows []row) (best row, ok bool) {
	for _, r := range rows {
		if tuned(r.Policy) && r.BusiestRequests <= balanced && (!ok || r.HitRate > best.HitRate) {
			best, ok = r, true
		}
	}
	return best, ok
}

// fastest is the policy with the lowest P90 of those that do not know the caches.
func fastest(rows []row) (best row, ok bool) {
	for _, r := range rows {
		if !knowing(r.Policy) && (!ok || r.P90 < best.P90) {
			best, ok = r, true
		}
	}
	return best, ok
}
