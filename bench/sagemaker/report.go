package main

import (
	"time"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome. Times and rates are simulated ones: real times times the
// time scale, and what is left after what the machine adds.
type report struct {
	Machine   record.Machine `json:"machine"`
	TimeScale float64        `json:"time_scale"`
	Rounds    int            `json:"rounds"`
	// PassedOver is how many requests Envoy has routed without warmpath.
	PassedOver int `json:"passed_over"`
	// Alone is the time of a request that a replica answers at once, one at a time:
	// what Envoy, warmpath and this machine add to all the others.
	Alone          quantiles             `json:"alone"`
	Configurations []configurationReport `json:"configurations"`
	Shares         sharesReport          `json:"shares"`
	Criteria       []criterion           `json:"criteria"`
}

// quantiles are of simulated milliseconds.
type quantiles struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
}

type configurationReport struct {
	configuration
	// Ceiling is the hit rate of one cache for all, AtRandom the expectation of
	// random routing; both are computed from the prompts.
	Ceiling    record.Spread    `json:"ceiling"`
	AtRandom   record.Spread    `json:"expected_at_random"`
	Strategies []strategyReport `json:"strategies"`
}

type strategyReport struct {
	Name     string         `json:"name"`
	Requests int            `json:"requests"`
	Failed   map[string]int `json:"failed,omitempty"`
	HitRate  record.Spread  `json:"hit_rate"`
	// The times to the first token, of answers not streamed the whole times, in
	// simulated milliseconds. The last is of all rounds together: a round alone has
	// too few requests for it.
	P50 record.Spread `json:"p50_ms"`
	P90 record.Spread `json:"p90_ms"`
	P99 float64       `json:"p99_ms"`
	// Throughput is in output tokens a simulated second.
	Throughput record.Spread `json:"output_tokens_per_second"`
	// The changes against RANDOM in the same round, in %.
	P50Change        record.Spread `json:"p50_change_percent"`
	P90Change        record.Spread `json:"p90_change_percent"`
	ThroughputChange record.Spread `json:"throughput_change_percent"`
	// BelowCeiling is how far the hit rate stays below the ceiling of the same
	// round, 0..1.
	BelowCeiling record.Spread `json:"below_ceiling"`
	// BusiestOverMean is the largest share of a replica over the mean.
	BusiestOverMean record.Spread `json:"busiest_over_mean"`
}

// sharesReport is how different prefixes, one request each, spread under
// PREFIX_AWARE.
type sharesReport struct {
	Prefixes int            `json:"prefixes"`
	Replicas int            `json:"replicas"`
	Failed   map[string]int `json:"failed,omitempty"`
	Least    float64        `json:"least"` // 0..1
	Largest  float64        `json:"largest"`
}

// newReport gathers the rounds.
func newReport(rounds []round, configurations []configuration, shares load.Summary, timeScale float64) report {
	r := report{TimeScale: timeScale, Rounds: len(rounds), Shares: newSharesReport(shares)}
	alone := load.NewResult()
	for _, round := range rounds {
		alone.Merge(round.alone)
	}
	q := alone.Summary().TTFT
	ms := milliseconds(timeScale)
	r.Alone = quantiles{ms(q.P50), ms(q.P90), ms(q.P99)}
	for i, c := range configurations {
		groups := make([]group, len(rounds))
		for n := range rounds {
			groups[n] = rounds[n].groups[i]
		}
		r.Configurations = append(r.Configurations, newConfigurationReport(c, groups, timeScale))
	}
	r.Criteria = r.criteria()
	return r
}

func newSharesReport(s load.Summary) sharesReport {
	r := sharesReport{Prefixes: s.Requests, Replicas: len(s.Shares), Failed: s.Errors, Least: 1}
	for _, share := range s.Shares {
		r.Least, r.Largest = min(r.Least, share.Fraction), max(r.Largest, share.Fraction)
	}
	return r
}

func newConfigurationReport(c configuration, groups []group, timeScale float64) configurationReport {
	r := configurationReport{configuration: c}
	r.Ceiling = over(groups, func(g group) float64 { return g.ceiling })
	r.AtRandom = over(groups, func(g group) float64 { return g.atRandom })
	for i, name := range c.strategies {
		r.Strategies = append(r.Strategies, newStrategyReport(name, c.Stream, i, groups, timeScale))
	}
	return r
}

// newStrategyReport gathers strategy number i; number 0 is what it is compared with.
func newStrategyReport(name string, stream bool, i int, groups []group, timeScale float64) strategyReport {
	r := strategyReport{Name: name, Failed: make(map[string]int)}
	all := load.NewResult()
	own, base := make([]load.Summary, len(groups)), make([]load.Summary, len(groups))
	below := make([]float64, len(groups))
	for n, g := range groups {
		all.Merge(g.results[i])
		own[n], base[n] = g.results[i].Summary(), g.results[0].Summary()
		below[n] = g.ceiling - own[n].HitRate
	}
	times := timesOf(stream)
	p50 := func(s load.Summary) time.Duration { return times(s).P50 }
	p90 := func(s load.Summary) time.Duration { return times(s).P90 }
	tokens := func(s load.Summary) float64 { return s.OutputTokensPerSecond / timeScale }
	ms := milliseconds(timeScale)

	sum := all.Summary()
	r.Requests, r.Failed = sum.Requests, sum.Errors
	r.HitRate = over(own, func(s load.Summary) float64 { return s.HitRate })
	r.P50 = over(own, func(s load.Summary) float64 { return ms(p50(s)) })
	r.P90 = over(own, func(s load.Summary) float64 { return ms(p90(s)) })
	r.P99 = ms(times(sum).P99)
	r.Throughput = over(own, tokens)
	r.P50Change, r.P90Change = changes(own, base, p50), changes(own, base, p90)
	r.ThroughputChange = changes(own, base, tokens)
	r.BelowCeiling = record.SpreadOf(below)
	r.BusiestOverMean = over(own, func(s load.Summary) float64 { return s.BusiestOverMean })
	return r
}

// timesOf returns which times are reported: an answer that is not streamed has no
// first token.
func timesOf(stream bool) func(load.Summary) load.Quantiles {
	if stream {
		return func(s load.Summary) load.Quantiles { return s.TTFT }
	}
	return func(s load.Summary) load.Quantiles { return s.Latency }
}

// milliseconds returns the conversion of real times into simulated milliseconds.
func milliseconds(timeScale float64) func(time.Duration) float64 {
	return func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) * timeScale }
}

// over is the spread of a figure over the rounds.
func over[R any](rounds []R, value func(R) float64) record.Spread {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = value(r)
	}
	return record.SpreadOf(values)
}

// changes compares round by round, in %: what makes a whole round slower does not
// count then.
func changes[V ~int64 | ~float64](own, base []load.Summary, value func(load.Summary) V) record.Spread {
	values := make([]float64, len(own))
	for i := range own {
		if from := float64(value(base[i])); from > 0 {
			values[i] = 100 * (float64(value(own[i]))/from - 1)
		}
	}
	return record.SpreadOf(values)
}
