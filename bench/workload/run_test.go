package workload_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/bench/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fleet(t *testing.T, p replica.Params) *replica.Fleet {
	t.Helper()
	f, err := replica.Listen([]string{"127.0.0.1:0"}, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func client(t *testing.T, baseURL string, header http.Header) *workload.Client {
	t.Helper()
	c := workload.NewClient(baseURL, "demo", 64, header)
	t.Cleanup(c.Close)
	return c
}

func requests(t *testing.T, prefixes, uses int) []workload.Request {
	t.Helper()
	q, err := workload.SharedPrefix(workload.Shared{
		Prefixes: prefixes, Uses: uses, PrefixChars: 3200, SuffixChars: 64, OutputTokens: 3, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestRunMeasuresWhatTheReplicaSaw(t *testing.T) {
	loads := map[string]workload.Load{"closed": {Concurrency: 8}, "open": {Rate: 2000, Seed: 1}}
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			// One request at a time, so exactly the first use of each prefix misses.
			single := engine.Llama70B()
			single.MaxSequences = 1
			f := fleet(t, replica.Params{Engine: single, TimeScale: 1000})
			c := client(t, "http://"+f.Addresses()[0]+"/v1/", nil)
			result, err := workload.Run(t.Context(), c, requests(t, 4, 10), load)
			if err != nil {
				t.Fatal(err)
			}
			s, truth := result.Summary(), f.Stats()[0]
			if s.Requests != 40 || s.Failed != 0 || truth.Started != 40 {
				t.Errorf("requests %d, failed %v, replica started %d", s.Requests, s.Errors, truth.Started)
			}
			if want := truth.HitRate; s.HitRate != want || want < 0.85 || want > 0.9 {
				t.Errorf("hit rate %v, the replica's %v, want about 0.88", s.HitRate, want)
			}
			if len(s.Shares) != 1 || s.Shares[0].Replica != f.Addresses()[0] || s.BusiestOverMean != 1 {
				t.Errorf("shares %+v", s.Shares)
			}
			for _, o := range result.Outcomes {
				if o.TTFT <= 0 || o.TTFT > o.Latency || o.Start < 0 || o.Start+o.Latency > result.Elapsed || o.OutputTokens != 3 {
					t.Errorf("outcome %+v in %v", o, result.Elapsed)
				}
			}
		})
	}
}

func TestTTFTIsTheFirstContent(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	header := http.Header{"x-replica-first-token-ms": {"120"}}
	c := client(t, "http://"+f.Addresses()[0]+"/v1", header)
	result, err := workload.Run(t.Context(), c, requests(t, 1, 1), workload.Load{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	// Headers come at once; a TTFT below the delay would be theirs.
	if ttft := result.Outcomes[0].TTFT; ttft < 120*time.Millisecond {
		t.Errorf("TTFT %v before the first token at 120 ms", ttft)
	}
}

func TestRoleChunkIsNoContent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-time.After(100 * time.Millisecond)
		_, _ = w.Write([]byte(`data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\ndata: [DONE]\n\n"))
	}))
	defer s.Close()
	c := client(t, s.URL, nil)
	result, err := workload.Run(t.Context(), c, requests(t, 1, 1), workload.Load{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if o := result.Outcomes[0]; o.Err != "" || o.TTFT < 100*time.Millisecond {
		t.Errorf("outcome %+v: content came after 100 ms", o)
	}
}

func TestFailuresAreNamed(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	for want, header := range map[string]http.Header{
		"status 503":     {"x-replica-status": {"503"}},
		"EOF":            {"x-replica-reset": {"before"}},
		"unexpected EOF": {"x-replica-reset": {"mid"}},
	} {
		c := client(t, "http://"+f.Addresses()[0]+"/v1", header)
		result, err := workload.Run(t.Context(), c, requests(t, 1, 1), workload.Load{Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Outcomes[0].Err; got != want {
			t.Errorf("%v: error %q, want %q", header, got, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	result, _ := workload.Run(t.Context(), client(t, "http://"+f.Addresses()[0], nil), requests(t, 1, 1), workload.Load{Concurrency: 1})
	if got := result.Outcomes[0].Err; got != "connection refused" {
		t.Errorf("closed port: error %q", got)
	}
}

func TestIncompleteStreamsFail(t *testing.T) {
	content := `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	for name, tc := range map[string]struct{ body, want string }{
		"no end":     {content, "stream ended before [DONE]"},
		"no content": {"data: [DONE]\n\n", "stream has no content"},
		"not JSON":   {"data: {\n\n", "stream has an event that is no chat completion chunk"},
		"complete":   {": comment\n\n" + content + "data: [DONE]\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(tc.body))
			}))
			defer s.Close()
			result, err := workload.Run(t.Context(), client(t, s.URL, nil), requests(t, 1, 1), workload.Load{Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Outcomes[0].Err; got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	for name, load := range map[string]workload.Load{"closed": {Concurrency: 5}, "open": {Rate: 1000}} {
		t.Run(name, func(t *testing.T) {
			f := fleet(t, replica.Params{TimeScale: 1000})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := client(t, "http://"+f.Addresses()[0]+"/v1", http.Header{"x-replica-hold": {"1"}})
			go func() {
				for f.Stats()[0].Held < 5 && ctx.Err() == nil {
					<-time.After(time.Millisecond)
				}
				cancel()
			}()
			result, err := workload.Run(ctx, c, requests(t, 1, 100_000), load)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			s := result.Summary()
			if s.Requests < 5 || s.Requests != s.Errors["canceled"] {
				t.Errorf("%d requests, errors %v", s.Requests, s.Errors)
			}
		})
	}
}

func TestLoadRejects(t *testing.T) {
	for _, load := range []workload.Load{{}, {Concurrency: 1, Rate: 1}, {Concurrency: -1, Rate: 1}, {Rate: -1}} {
		if _, err := workload.Run(t.Context(), nil, nil, load); err == nil || !strings.Contains(err.Error(), "load with") {
			t.Errorf("%+v: error %v", load, err)
		}
	}
}
