package load

import (
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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
	// TTFT is the time to the first content of a stream, 0 when none came or the
	// answer was no stream.
	TTFT time.Duration
	// Latency is the time to the end, of whatever kind.
	Latency time.Duration
	// The tokens as the server's usage reports them.
	PromptTokens, CachedTokens, OutputTokens int
	// Err is empty for an answer that came to its end.
	Err string
}

// Result gathers outcomes in bounded memory, however many there are. Times,
// tokens and shares leave failed requests out.
type Result struct {
	// Elapsed is the time from the beginning to the last answer's end.
	Elapsed time.Duration

	requests, failed int
	errors           map[string]int
	ttft, latency    *hdrhistogram.Histogram
	replicas         map[string]*tally
}

// tally is what was served by one replica.
type tally struct{ requests, prompt, cached, output int }

// The range of the histograms, and their precision: three digits.
const (
	shortest = time.Microsecond
	longest  = time.Hour
	digits   = 3
)

// NewResult returns an empty result.
func NewResult() *Result {
	return &Result{
		errors: make(map[string]int), replicas: make(map[string]*tally),
		ttft: newHistogram(), latency: newHistogram(),
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(shortest), int64(longest), digits)
}

// Add counts an outcome.
func (r *Result) Add(o Outcome) {
	r.requests++
	if o.Err != "" {
		r.failed++
		r.errors[o.Err]++
		return
	}
	record(r.latency, o.Latency)
	if o.TTFT > 0 {
		record(r.ttft, o.TTFT)
	}
	t := r.replicas[o.Replica]
	if t == nil {
		t = new(tally)
		r.replicas[o.Replica] = t
	}
	t.requests++
	t.prompt += o.PromptTokens
	t.cached += o.CachedTokens
	t.output += o.OutputTokens
}

// Merge adds what another result has gathered, as if the runs had been one, the
// times of both in a row.
func (r *Result) Merge(o *Result) {
	r.Elapsed += o.Elapsed
	r.requests += o.requests
	r.failed += o.failed
	for reason, n := range o.errors {
		r.errors[reason] += n
	}
	r.ttft.Merge(o.ttft)
	r.latency.Merge(o.latency)
	for name, t := range o.replicas {
		sum := r.replicas[name]
		if sum == nil {
			sum = new(tally)
			r.replicas[name] = sum
		}
		sum.requests += t.requests
		sum.prompt += t.prompt
		sum.cached += t.cached
		sum.output += t.output
	}
}

// record counts what is beyond the range at its end.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, shortest), longest))) // fails only beyond the range
}

// Summary returns the figures of all outcomes so far.
func (r *Result) Summary() Summary {
	s := Summary{
		Requests: r.requests, Failed: r.failed, Errors: maps.Clone(r.errors), Seconds: r.Elapsed.Seconds(),
		TTFT: quantiles(r.ttft), Latency: quantiles(r.latency),
	}
	good := r.requests - r.failed
	var all tally
	busiest := 0
	for _, name := range slices.Sorted(maps.Keys(r.replicas)) {
		t := r.replicas[name]
		s.Shares = append(s.Shares, Share{
			Replica: name, Requests: t.requests, Fraction: fraction(t.requests, good), HitRate: fraction(t.cached, t.prompt),
		})
		all.prompt += t.prompt
		all.cached += t.cached
		all.output += t.output
		busiest = max(busiest, t.requests)
	}
	s.HitRate = fraction(all.cached, all.prompt)
	s.BusiestOverMean = fraction(busiest*len(r.replicas), good)
	if s.Seconds > 0 {
		s.RequestsPerSecond = float64(good) / s.Seconds
		s.OutputTokensPerSecond = float64(all.output) / s.Seconds
	}
	return s
}

// fraction is part / whole, 0 of nothing.
func fraction(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	at := func(percent float64) time.Duration { return time.Duration(h.ValueAtQuantile(percent)) }
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9)}
}
