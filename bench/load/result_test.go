package load

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// near tells whether a time is what it should be, to the histogram's precision.
func near(got, want time.Duration) bool {
	return math.Abs(float64(got-want)) <= float64(want)/1000+float64(shortest)
}

func TestSummary(t *testing.T) {
	r := NewResult()
	r.Elapsed = 2 * time.Second
	for i := 1; i <= 10; i++ {
		replica := "a"
		if i > 6 {
			replica = "b"
		}
		r.Add(Outcome{
			Status: 200, Replica: replica, TTFT: time.Duration(i) * time.Millisecond, Latency: time.Duration(i) * time.Second,
			PromptTokens: 100, CachedTokens: 10 * (i - 1), OutputTokens: 4,
		})
	}
	r.Add(Outcome{Status: 503, Replica: "c", Err: "status 503", PromptTokens: 7, TTFT: time.Hour})
	r.Add(Outcome{Err: "connection refused", Latency: time.Hour})
	r.Add(Outcome{Err: "connection refused"})
	got := r.Summary()
	for _, q := range []struct{ got, want time.Duration }{
		{got.TTFT.P50, 5 * time.Millisecond},
		{got.TTFT.P90, 9 * time.Millisecond},
		{got.TTFT.P999, 10 * time.Millisecond},
		{got.Latency.P50, 5 * time.Second},
		{got.Latency.P90, 9 * time.Second},
		{got.Latency.P99, 10 * time.Second},
	} {
		if !near(q.got, q.want) {
			t.Errorf("quantile %v, want %v", q.got, q.want)
		}
	}
	markdown := got.Markdown()
	for _, line := range []string{
		"13 requests in 2.0 s, 3 failed, 5.0 requests/s", "hit rate 45.0 %", "Failed 2 times: connection refused.",
		"| first content | 5.0", "| a | 6 | 60.0 % | 25.0 % |",
	} {
		if !strings.Contains(markdown, line) {
			t.Errorf("it lacks %q:\n%s", line, markdown)
		}
	}
	got.TTFT, got.Latency = Quantiles{}, Quantiles{}
	want := Summary{
		Requests: 13, Failed: 3, Errors: map[string]int{"status 503": 1, "connection refused": 2}, Seconds: 2,
		HitRate: 0.45, RequestsPerSecond: 5, OutputTokensPerSecond: 20,
		Shares: []Share{
			{Replica: "a", Requests: 6, Fraction: 0.6, HitRate: 0.25},
			{Replica: "b", Requests: 4, Fraction: 0.4, HitRate: 0.75},
		},
		BusiestOverMean: 1.2,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("summary\n got %+v\nwant %+v", got, want)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	empty, failed := NewResult(), NewResult()
	failed.Add(Outcome{Err: "canceled"})
	for _, r := range []*Result{empty, failed} {
		s := r.Summary()
		if s.HitRate != 0 || s.TTFT != (Quantiles{}) || s.BusiestOverMean != 0 || s.RequestsPerSecond != 0 {
			t.Errorf("summary without an answer: %+v", s)
		}
	}
}

// The quantiles are those of the sorted values, counted out, and the order in
// which outcomes come does not matter.
func TestQuantilesAreThoseOfTheSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(int64(shortest), int64(10*time.Minute)), 1, 300).Draw(t, "values")
		r := NewResult()
		for _, v := range values {
			r.Add(Outcome{Latency: time.Duration(v)})
		}
		slices.Sort(values)
		got := r.Summary().Latency
		for q, got := range map[float64]time.Duration{0.5: got.P50, 0.9: got.P90, 0.99: got.P99, 0.999: got.P999} {
			// HdrHistogram takes the nearest rank, not the next one up.
			want := time.Duration(values[max(1, int(q*float64(len(values))+0.5))-1])
			if !near(got, want) {
				t.Errorf("quantile %v of %d values: %v, want %v", q, len(values), got, want)
			}
		}
	})
}

// Two results merged are one of all their outcomes.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcomes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Outcome {
			return Outcome{
				Replica: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "replica"), Err: rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "error"),
				Latency: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "latency")), TTFT: time.Duration(rapid.IntRange(0, 9).Draw(t, "TTFT")),
				PromptTokens: 9, CachedTokens: rapid.IntRange(0, 9).Draw(t, "cached"), OutputTokens: 2,
			}
		})).Draw(t, "outcomes")
		at := rapid.IntRange(0, len(outcomes)).Draw(t, "at")
		one, first, second := NewResult(), NewResult(), NewResult()
		for i, o := range outcomes {
			one.Add(o)
			if i < at {
				first.Add(o)
			} else {
				second.Add(o)
			}
		}
		one.Elapsed, first.Elapsed, second.Elapsed = 3*time.Second, time.Second, 2*time.Second
		first.Merge(second)
		if got, want := first.Summary(), one.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("merged\n got %+v\nwant %+v", got, want)
		}
	})
}

// What is beyond the histogram is counted at its end, not lost.
func TestTimesBeyondTheRange(t *testing.T) {
	r := NewResult()
	r.Add(Outcome{Latency: 10 * longest})
	r.Add(Outcome{Latency: -time.Second})
	r.Add(Outcome{Latency: 10 * longest})
	if got := r.Summary().Latency; !near(got.P50, longest) {
		t.Errorf("P50 %v, want %v", got.P50, longest)
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	observe := Progress(&b, 3, time.Nanosecond)
	observe(Outcome{})
	observe(Outcome{Err: "x"})
	if got := b.String(); !strings.Contains(got, "1 of 3 requests, 0 failed\n") || !strings.HasSuffix(got, "2 of 3 requests, 1 failed\n") {
		t.Errorf("it says %q", got)
	}
}
