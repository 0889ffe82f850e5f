package workload

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	r := Result{Elapsed: 2 * time.Second}
	for i := 1; i <= 10; i++ {
		replica := "a"
		if i > 6 {
			replica = "b"
		}
		r.Outcomes = append(r.Outcomes, Outcome{
			Status: 200, Replica: replica, TTFT: time.Duration(i) * time.Millisecond, Latency: time.Duration(i) * time.Second,
			PromptTokens: 100, CachedTokens: 10 * (i - 1), OutputTokens: 4,
		})
	}
	failed := []Outcome{
		{Status: 503, Replica: "c", Err: "status 503", PromptTokens: 7, TTFT: time.Hour},
		{Err: "connection refused", Latency: time.Hour},
		{Err: "connection refused"},
	}
	r.Outcomes = append(r.Outcomes, failed...)
	got := r.Summary()
	want := Summary{
		Requests: 13, Failed: 3, Errors: map[string]int{"status 503": 1, "connection refused": 2},
		HitRate:           0.45,
		TTFT:              Quantiles{5 * time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond},
		Latency:           Quantiles{5 * time.Second, 9 * time.Second, 10 * time.Second},
		RequestsPerSecond: 5, OutputTokensPerSecond: 20,
		Shares: []Share{
			{Replica: "a", Requests: 6, Fraction: 0.6, HitRate: 0.25},
			{Replica: "b", Requests: 4, Fraction: 0.4, HitRate: 0.75},
		},
		BusiestOverMean: 1.2,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("summary\n got %+v\nwant %+v", got, want)
	}
	for _, line := range []string{"requests 13, failed 3, 5.0/s", "hit rate 45.0 %", "P50 5ms, P90 9ms, P99 10ms", "error connection refused: 2"} {
		if !strings.Contains(got.String(), line) {
			t.Errorf("text lacks %q:\n%s", line, got)
		}
	}
}

func TestSummaryOfNothing(t *testing.T) {
	for _, r := range []Result{{}, {Outcomes: []Outcome{{Err: "canceled"}}}} {
		if s := r.Summary(); s.HitRate != 0 || s.TTFT != (Quantiles{}) || s.BusiestOverMean != 0 || math.IsNaN(s.RequestsPerSecond) {
			t.Errorf("summary of %d failed requests: %+v", len(r.Outcomes), s)
		}
	}
}

func TestSummaryDoesNotDependOnOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	r := Result{Elapsed: time.Second}
	for range 200 {
		r.Outcomes = append(r.Outcomes, Outcome{
			Replica: string(rune('a' + random.IntN(5))), TTFT: time.Duration(random.IntN(1000)),
			PromptTokens: 50, CachedTokens: random.IntN(50),
		})
	}
	want := r.Summary()
	random.Shuffle(len(r.Outcomes), func(i, j int) { r.Outcomes[i], r.Outcomes[j] = r.Outcomes[j], r.Outcomes[i] })
	if got := r.Summary(); !reflect.DeepEqual(got, want) {
		t.Errorf("shuffled\n got %+v\nwant %+v", got, want)
	}
}

// TestRank compares with the definition, counted out.
func TestRank(t *testing.T) {
	for n := 1; n <= 101; n++ {
		sorted := make([]time.Duration, n)
		for i := range sorted {
			sorted[i] = time.Duration(i / 3) // with repetitions
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			got := rank(sorted, q)
			atMost := 0
			for _, v := range sorted {
				if v <= got {
					atMost++
				}
			}
			below := 0
			for _, v := range sorted {
				if v < got {
					below++
				}
			}
			if float64(atMost) < q*float64(n) || float64(below) >= q*float64(n) {
				t.Errorf("n %d, q %v: %v has %d at most, %d below", n, q, got, atMost, below)
			}
		}
	}
}
