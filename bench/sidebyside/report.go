package main

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome. Times are in microseconds.
type report struct {
	Machine  record.Machine `json:"machine"`
	Rounds   int            `json:"rounds"`
	Requests int            `json:"requests_per_latency_phase"`
	Cases    []caseReport   `json:"cases"`
	Criteria []criterion    `json:"criteria"`
}

type caseReport struct {
	testCase
	Arms []armReport `json:"arms"`
}

type armReport struct {
	Name string `json:"name"`
	Twin string `json:"twin,omitempty"`
	// Latency of requests one at a time. The last is of all rounds together: a
	// round alone has too few requests for it.
	P50  record.Spread `json:"p50_us"`
	P90  record.Spread `json:"p90_us"`
	P99  record.Spread `json:"p99_us"`
	P999 float64       `json:"p999_us"`
	// Added is what the arm takes longer than Envoy's round robin in the same
	// round.
	AddedP50 record.Spread `json:"added_p50_us"`
	AddedP99 record.Spread `json:"added_p99_us"`
	// Throughput is in requests a second with 16 in flight; Envoy, Router and
	// Client are the processor time of one of these requests. Client's includes
	// the model servers'.
	Throughput record.Spread `json:"requests_per_second"`
	Envoy      record.Spread `json:"envoy_cpu_us"`
	Router     record.Spread `json:"router_cpu_us"`
	Client     record.Spread `json:"client_cpu_us"`

	Sent   int            `json:"requests"`
	Failed map[string]int `json:"failed,omitempty"`
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// newReport gathers the rounds. arms are in the order of the samples, the baseline
// among them.
func newReport(all rounds, cases []testCase, arms []arm) report {
	r := report{Rounds: len(all)}
	base := slices.IndexFunc(arms, func(a arm) bool { return a.name == baseline })
	for i, c := range cases {
		cr := caseReport{testCase: c}
		for n, a := range arms {
			cr.Arms = append(cr.Arms, newArmReport(a, all.of(i, n), all.of(i, base)))
		}
		r.Cases = append(r.Cases, cr)
	}
	r.Criteria = criteria(all, cases, arms)
	return r
}

// of returns an arm's samples of a case, one a round.
func (all rounds) of(testCase, arm int) []sample {
	samples := make([]sample, len(all))
	for i, round := range all {
		samples[i] = round[testCase][arm]
	}
	return samples
}

func newArmReport(a arm, samples, base []sample) armReport {
	median := func(value func(sample) float64) record.Spread { return record.SpreadOf(each(samples, value)) }
	return armReport{
		Name: a.name, Twin: a.twin,
		P50: median(p50), P90: median(p90), P99: median(p99), P999: microseconds(together(samples).Latency.P999),
		AddedP50:   record.SpreadOf(pairs(samples, base, p50, minus)),
		AddedP99:   record.SpreadOf(pairs(samples, base, p99, minus)),
		Throughput: median(throughput),
		Envoy:      median(envoyCost), Router: median(routerCost), Client: median(clientCost),
		Sent: sent(samples), Failed: failed(samples),
	}
}

// together is the latency of all rounds.
func together(samples []sample) load.Summary {
	all := load.NewResult()
	for _, s := range samples {
		all.Merge(s.alone)
	}
	return all.Summary()
}

func sent(samples []sample) (sum int) {
	for _, s := range samples {
		sum += s.alone.Summary().Requests + s.busy.Summary().Requests
	}
	return sum
}

func failed(samples []sample) map[string]int {
	reasons := make(map[string]int)
	for _, s := range samples {
		for _, r := range []*load.Result{s.alone, s.busy} {
			for reason, n := range r.Summary().Errors {
				reasons[reason] += n
			}
		}
	}
	return reasons
}

func p50(s sample) float64        { return microseconds(s.alone.Summary().Latency.P50) }
func p90(s sample) float64        { return microseconds(s.alone.Summary().Latency.P90) }
func p99(s sample) float64        { return microseconds(s.alone.Summary().Latency.P99) }
func throughput(s sample) float64 { return s.busy.Summary().RequestsPerSecond }
func envoyCost(s sample) float64  { return s.perRequest(s.spent.envoy) }
func routerCost(s sample) float64 { return s.perRequest(s.spent.router) }
func clientCost(s sample) float64 { return s.perRequest(s.spent.client) }

// gatewayCost is that of Envoy and the router.
func gatewayCost(s sample) float64 { return envoyCost(s) + routerCost(s) }

// perRequest is a part of the processor time of one request at saturation.
func (s sample) perRequest(d time.Duration) float64 {
	return microseconds(d) / float64(max(1, s.busy.Summary().Requests))
}

func each(samples []sample, value func(sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	return values
}

// pairs compares two arms round by round: what makes a whole round slower does
// not count then.
func pairs(own, other []sample, value func(sample) float64, compare func(own, other float64) float64) []float64 {
	values := make([]float64, len(own))
	for i := range own {
		values[i] = compare(value(own[i]), value(other[i]))
	}
	return values
}

func minus(own, other float64) float64 { return own - other }
func over(own, other float64) float64  { return own / other }
