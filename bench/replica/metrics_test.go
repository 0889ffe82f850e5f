package replica

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scrape returns what /metrics says of one metric, by its labels but for
// model_name and engine.
func scrape(t *testing.T, r *Replica, name string) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", w.Code, w.Body)
	}
	const own = `engine="0",`
	values := make(map[string]string)
	for line := range strings.Lines(w.Body.String()) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		labels, ok := strings.CutPrefix(series, name+"{")
		if !ok {
			continue
		}
		if !strings.Contains(labels, own) || !strings.Contains(labels, `model_name="base"`) {
			t.Errorf("%s: want engine and model_name", line)
		}
		labels = strings.NewReplacer(own, "", `model_name="base"`, "", "}", "").Replace(labels)
		values[strings.Trim(labels, ",")] = value
	}
	return values
}

// gauges checks the values of metrics without further labels.
func gauges(t *testing.T, r *Replica, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := scrape(t, r, name); len(got) != 1 || got[""] != value {
			t.Errorf("%s: %v, want %s", name, got, value)
		}
	}
}

func named(t *testing.T) *Replica {
	t.Helper()
	p := plainParams()
	p.Models = []string{"base", "adapter"}
	p.Engine.MaxSequences = 2
	return made(t, p)
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := named(t)
		for range 3 {
			go complete(t.Context(), r, "p", 100, 10, false)
			_ = sleep(t.Context(), time.Millisecond)
		}
		_ = sleep(t.Context(), 147*time.Millisecond) // at 150: the second was admitted at 115
		gauges(t, r, map[string]string{
			"vllm:num_requests_running":       "2",
			"vllm:num_requests_waiting":       "1",
			"vllm:kv_cache_usage_perc":        "0.0128", // 8 of 625: 7 blocks each, 6 of them shared
			"vllm:gpu_cache_usage_perc":       "0.0128",
			"vllm:prefix_cache_queries_total": "200",
			"vllm:prefix_cache_hits_total":    "96",
			"vllm:prompt_tokens_total":        "200",
			"vllm:generation_tokens_total":    "3",
		})
		_ = sleep(t.Context(), time.Second)
		gauges(t, r, map[string]string{
			"vllm:num_requests_running": "0", "vllm:num_requests_waiting": "0", "vllm:kv_cache_usage_perc": "0",
			"vllm:prompt_tokens_total": "300", "vllm:generation_tokens_total": "30",
			"vllm:time_to_first_token_seconds_count": "3",
		})
		bucket := scrape(t, r, "vllm:time_to_first_token_seconds_bucket")
		if bucket[`le="0.1"`] != "0" || bucket[`le="0.25"`] != "2" || bucket[`le="0.5"`] != "3" {
			t.Errorf("times to first token %v", bucket)
		}
	})
}

func TestRequestsByReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := named(t)
		complete(t.Context(), r, "p", 100, 2, true)
		complete(t.Context(), r, "p", 100, 2, false, "x-replica-tokens", "3") // the model's own end
		for _, leave := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), leave)
			complete(ctx, r, "p", 100, 9, true)
			cancel()
		}
		complete(t.Context(), r, "p", 100, 2, true, "x-replica-status", "500")
		want := map[string]string{`finished_reason="length"`: "1", `finished_reason="stop"`: "1", `finished_reason="abort"`: "3"}
		got := scrape(t, r, "vllm:request_success_total")
		for reason, n := range want {
			if got[reason] != n {
				t.Errorf("%v, want %v", got, want)
			}
		}
	})
}
