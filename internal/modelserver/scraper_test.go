package modelserver

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// same compares numbers of which NaN is one.
func same(a, b Engine) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

var nan = math.NaN()

func TestReadEngine(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       Engine
	}{
		{"nothing", "", Engine{nan, nan, nan, nan}},
		{"vLLM", `# HELP vllm:prefix_cache_queries_total Prefix cache queries.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="a } b"} 1.5e+06
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 500000 1700000000000
vllm:prefix_cache_queries_created{engine="0"} 1.7e9
vllm:prefix_cache_hits_total{engine="0"} 1e6
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:gpu_cache_usage_perc{engine="0"} 0.9
`, Engine{2e6, 1e6, nan, 0.5}},
		{"an old vLLM", "vllm:gpu_prefix_cache_queries 10\nvllm:gpu_prefix_cache_hits 4", Engine{10, 4, nan, nan}},
		{"both names", "vllm:gpu_prefix_cache_hits_total 9\nvllm:prefix_cache_hits_total 4\n", Engine{nan, 4, nan, nan}},
		{"SGLang", "sglang:cache_hit_rate{tp_rank=\"0\"} 0.5\nsglang:token_usage 0.1\n", Engine{nan, nan, 0.5, 0.1}},
		{"llama.cpp", `# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 53
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 147
llamacpp:prompt_seconds_total 0.069207
llamacpp:prompt_tokens_seconds 765.818
`, Engine{200, 147, nan, nan}},
		{"an older llama.cpp", "llamacpp:prompt_tokens_total 81\n", Engine{nan, nan, nan, nan}},
		{"odd values", "vllm:prefix_cache_hits_total NaN\nvllm:prefix_cache_queries_total +Inf\nsglang:cache_hit_rate -1\nsglang:token_usage x\nvllm:kv_cache_usage_perc\n", Engine{nan, nan, nan, nan}},
		{"other names", "vllm:prefix_cache_hits_total_of_all 4\nvllm:kv_cache_usage_perc_x{a=\"b\"} 0.9\n", Engine{nan, nan, nan, nan}},
	} {
		got, err := ParseMetrics(strings.NewReader(tc.text))
		if err != nil || !same(got, tc.want) {
			t.Errorf("%s: %+v (%v), want %+v", tc.name, got, err, tc.want)
		}
	}
	for name, text := range map[string]string{
		"more than 4194304 bytes": strings.Repeat("x y\n", maxMetrics/4+1),
		"token too long":          strings.Repeat("x", maxMetricLine+1),
	} {
		if _, err := ParseMetrics(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

func FuzzReadEngine(f *testing.F) {
	f.Add([]byte("vllm:prefix_cache_queries_total{a=\"}\"} 1\n"))
	f.Add([]byte("sglang:cache_hit_rate 0.5 1700000000000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseMetrics(strings.NewReader(string(text)))
		for _, n := range []float64{e.Queries, e.Hits, e.HitRate, e.Usage} {
			if err == nil && n < 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// Endpoints are asked once an interval; one that fails is told of, and one that has left
// is asked no more.
func TestScraper(t *testing.T) {
	var status atomic.Int64
	status.Store(200)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != MetricsPath || r.Method != http.MethodGet || r.UserAgent() != "warmpath-metrics" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("vllm:prefix_cache_queries_total 8\nvllm:prefix_cache_hits_total 2\n"))
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	answers := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	scraper := NewScraper(20*time.Millisecond, func(a string, e Engine, err error) {
		select {
		case answers <- fmt.Sprint(a == address, e.Queries, e.Hits, err):
		case <-ctx.Done():
		}
	})
	scraper.rounds.client.Timeout = 10 * time.Second
	var wg sync.WaitGroup
	wg.Go(func() { scraper.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	set, _ := fleet.NewSet([]fleet.Endpoint{{Address: address, Weight: 1}})
	scraper.SetPool("", set)
	if got := <-answers; got != "true 8 2 <nil>" {
		t.Errorf("%s", got)
	}
	status.Store(302)
	for range 2 { // one may have been on its way
		if got := <-answers; strings.Contains(got, "GET /metrics: status 302, want 200") {
			return
		}
	}
	t.Error("a failure is not told of")
}

// An endpoint of two pools is asked once, as long as one of them has it.
func TestScraperOfPools(t *testing.T) {
	s := NewScraper(time.Second, nil)
	s.SetPool("", members(0, 0, "a", "b"))
	s.SetPool("llama", members(0, 0, "b", "c"))
	expect := func(want ...string) {
		t.Helper()
		if got := s.rounds.current(); !got.Equal(members(0, 0, want...)) {
			t.Errorf("%+v are asked, want %q", got.Endpoints(), want)
		}
	}
	expect("a", "b", "c")
	s.SetPool("", members(0, 0))
	expect("b", "c")
	s.SetPool("llama", members(0, 0, "c"))
	expect("c")
}
