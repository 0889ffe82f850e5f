package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome.
type report struct {
	Machine record.Machine `json:"machine"`
	// Engine is the file's name and what it calls itself, Flags how it ran.
	Engine string `json:"engine"`
	Flags  string `json:"engine_flags"`

	Prefixes int    `json:"prefixes"`
	Uses     int    `json:"uses_of_each"`
	Lengths  [2]int `json:"shortest_and_longest_prefix_tokens"`
	// Ceiling is the share of the requests that can be warm, 0..1.
	Ceiling float64 `json:"ceiling"`

	RoundRobin armReport     `json:"envoy_round_robin"`
	Warmpath   armReport     `json:"warmpath_prefix_aware_auto"`
	Told       toldReport    `json:"cached_tokens_as_warmpath_knows"`
	Bursts     []burstReport `json:"bursts"`
	// PassedOver is how many requests Envoy has routed without warmpath.
	PassedOver int         `json:"passed_over"`
	Criteria   []criterion `json:"criteria"`
}

// armReport is what the requests of an arm have met. Times leave failed requests out.
type armReport struct {
	Requests int            `json:"requests"`
	Failed   map[string]int `json:"failed,omitempty"`
	// WarmRequests is the share of the requests whose prefix the engine had, and
	// CachedTokens that of the tokens, 0..1, both as the engine says.
	WarmRequests float64 `json:"warm_requests"`
	CachedTokens float64 `json:"cached_tokens"`
	// TTFT is the time to the first chunk with content.
	TTFT    times   `json:"ttft"`
	Seconds float64 `json:"seconds"`
	Shares  []share `json:"replicas"`
}

// times are of milliseconds.
type times struct {
	Mean float64 `json:"mean_ms"`
	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
}

// share is what one replica has served.
type share struct {
	Replica  string `json:"replica"`
	Requests int    `json:"requests"`
	Prefixes int    `json:"prefixes"`
}

// burstReport is an arm with a threshold.
type burstReport struct {
	Threshold string `json:"concurrency_threshold"`
	armReport
}

// toldReport are shares of cached tokens, 0..1: as warmpath read them of the answers,
// and as the engines' metrics have them.
type toldReport struct {
	Answers float64 `json:"of_the_answers"`
	Metrics float64 `json:"of_the_engines_metrics"`
}

// newReport sums a measurement up.
func newReport(m *measurement) report {
	w := m.workload
	r := report{
		Flags: engineFlags, Prefixes: w.prefixes, Uses: w.uses, Lengths: [2]int{w.shortest, w.longest}, Ceiling: w.ceiling(),
		RoundRobin: newArmReport(m.roundRobin), Warmpath: newArmReport(m.warmpath), PassedOver: m.passedOver,
		Told: toldReport{over(m.told.readCached, m.told.readPrompt), over(m.told.engineHits, m.told.engineQueries)},
	}
	for i, b := range m.bursts {
		r.Bursts = append(r.Bursts, burstReport{w.bursts[i].name(), newArmReport(b)})
	}
	r.Criteria = r.criteria(w.scale)
	return r
}

// newArmReport sums outcomes up.
func newArmReport(o outcomes) armReport {
	r := armReport{Requests: len(o.all), Failed: make(map[string]int), Seconds: o.elapsed.Seconds()}
	var ttfts []time.Duration
	warmOnes, cached, prompt := 0, 0, 0
	prefixes := make(map[string]map[int]int) // requests by replica and prefix
	for _, one := range o.all {
		if one.Err != "" {
			r.Failed[one.Err]++
			continue
		}
		ttfts = append(ttfts, one.TTFT)
		cached, prompt = cached+one.CachedTokens, prompt+one.PromptTokens
		if warm(one) {
			warmOnes++
		}
		if prefixes[one.Replica] == nil {
			prefixes[one.Replica] = make(map[int]int)
		}
		prefixes[one.Replica][one.Prefix]++
	}
	r.WarmRequests = over(float64(warmOnes), float64(len(o.all)))
	r.CachedTokens = over(float64(cached), float64(prompt))
	r.TTFT = timesOf(ttfts)
	for _, name := range slices.Sorted(maps.Keys(prefixes)) {
		s := share{Replica: name, Prefixes: len(prefixes[name])}
		for _, n := range prefixes[name] {
			s.Requests += n
		}
		r.Shares = append(r.Shares, s)
	}
	return r
}

func timesOf(all []time.Duration) times {
	if len(all) == 0 {
		return times{}
	}
	slices.Sort(all)
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	// The smallest time that so many percent of all do not exceed.
	at := func(percent int) float64 { return milliseconds(all[(len(all)*percent+99)/100-1]) }
	return times{Mean: milliseconds(sum) / float64(len(all)), P50: at(50), P90: at(90)}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// over is part / whole, 0 of nothing.
func over(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

func (r armReport) failed() (sum int) {
	for _, n := range r.Failed {
		sum += n
	}
	return sum
}

// criterion is what has to be so, and what it came to.
type criterion struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Bound is the largest value allowed, the smallest where AtLeast is set.
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"`
	Kept    bool    `json:"kept"`
}

// belowCeiling is how many points of the hit rate routing may give away.
const belowCeiling = 3

func (r *report) criteria(s scale) []criterion {
	failed := r.RoundRobin.failed() + r.Warmpath.failed()
	for _, b := range r.Bursts {
		failed += b.failed()
	}
	below, gain := 100*(r.Ceiling-r.Warmpath.WarmRequests), over(r.RoundRobin.TTFT.Mean, r.Warmpath.TTFT.Mean)
	return []criterion{
		{What: "failed requests", Value: float64(failed), Kept: failed == 0},
		{What: "warm requests below the ceiling", Value: below, Unit: "points", Bound: belowCeiling, Kept: below <= belowCeiling},
		{What: "mean TTFT of round robin over that of warmpath", Value: gain, Unit: "times", Bound: s.leastGain, AtLeast: true, Kept: gain >= s.leastGain},
	}
}

// verdict is an error that names the bounds that are not kept.
func (r *report) verdict() error {
	var broken []string
	for _, c := range r.Criteria {
		if !c.Kept {
			broken = append(broken, c.What+": "+c.String())
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("not kept: %s", strings.Join(broken, "; "))
}

// String is the value with its bound.
func (c criterion) String() string {
	sign := "≤"
	if c.AtLeast {
		sign = "≥"
	}
	value := strings.TrimSpace(fmt.Sprintf("%.1f %s", c.Value, c.Unit))
	return fmt.Sprintf("%s (%s %g)", value, sign, c.Bound)
}
