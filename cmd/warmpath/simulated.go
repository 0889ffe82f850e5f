package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/warmpath/warmpath/internal/sim"
)

// simulated is what simulate prints.
type simulated struct {
	Trace       string         `json:"trace"`
	Format      string         `json:"format"`
	Requests    int            `json:"requests"`
	Replicas    int            `json:"replicas"`
	CacheTokens int            `json:"cache_tokens"`
	Model       string         `json:"model"`
	Speed       float64        `json:"speed"`
	Seed        uint64         `json:"seed"`
	Notes       []string       `json:"notes,omitempty"`
	Results     []policyResult `json:"results"`
}

type policyResult struct {
	Policy        string        `json:"policy"`
	Routers       int           `json:"routers"`
	Requests      int           `json:"requests"`
	HitRate       float64       `json:"hit_rate"`
	TTFT          quantiles     `json:"ttft_ms"`
	BusiestOver   busiest       `json:"busiest_over_mean"`
	OverflowShare float64       `json:"overflow_share"`
	MovedShare    float64       `json:"moved_share"`
	Shares        []replicaPart `json:"shares"`
}

type quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

type busiest struct {
	Requests float64 `json:"requests"`
	Prefill  float64 `json:"prefill"`
}

// replicaPart is one replica's part of the whole, 0 to 1.
type replicaPart struct {
	Requests float64 `json:"requests"`
	Prefill  float64 `json:"prefill"`
}

func resultOf(policy string, routers int, r *sim.Result) policyResult {
	ms := func(q float64) float64 { return float64(r.Quantile(q).Microseconds()) / 1000 }
	requests := func(s sim.Share) int64 { return s.Requests }
	prefill := func(s sim.Share) int64 { return s.Prefill }
	keyed := float64(max(r.Keyed, 1))
	v := policyResult{
		Policy: policy, Routers: routers, Requests: r.Requests, HitRate: r.HitRate(),
		TTFT:          quantiles{P50: ms(.5), P90: ms(.9), P99: ms(.99)},
		BusiestOver:   busiest{Requests: r.Busiest(requests), Prefill: r.Busiest(prefill)},
		OverflowShare: float64(r.Overflowed) / float64(max(r.Requests, 1)), MovedShare: float64(r.Moved) / keyed,
	}
	var all sim.Share
	for _, s := range r.Shares {
		all.Requests, all.Prefill = all.Requests+s.Requests, all.Prefill+s.Prefill
	}
	for _, s := range r.Shares {
		v.Shares = append(v.Shares, replicaPart{
			Requests: float64(s.Requests) / float64(max(all.Requests, 1)), Prefill: float64(s.Prefill) / float64(max(all.Prefill, 1)),
		})
	}
	return v
}

func (s *simulated) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s: %d requests, %d replicas (%s, %d tokens of cache), speed %v, seed %d\n",
		s.Trace, s.Requests, s.Replicas, s.Model, s.CacheTokens, s.Speed, s.Seed)
	for _, n := range s.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintln(t, "policy\trouters\thit %\tTTFT P50 ms\tP90\tP99\tbusiest/mean\tby prefill\toverflow %\t")
	for _, r := range s.Results {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.1f\t\n", r.Policy, r.Routers, 100*r.HitRate,
			r.TTFT.P50, r.TTFT.P90, r.TTFT.P99, r.BusiestOver.Requests, r.BusiestOver.Prefill, 100*r.OverflowShare)
	}
	return t.Flush()
}
