package load_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
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

// senders are all kinds of clients of a base URL.
func senders(t *testing.T, base string, header http.Header) map[string]load.Sender {
	t.Helper()
	c, w := load.NewClient(base, 64, header), load.NewWire(strings.TrimPrefix(base, "http://"), 16)
	t.Cleanup(c.Close)
	t.Cleanup(w.Close)
	if header != nil {
		return map[string]load.Sender{"client": c}
	}
	return map[string]load.Sender{"client": c, "wire": w}
}

func client(t *testing.T, base string, header http.Header) load.Sender {
	t.Helper()
	return senders(t, base, header)["client"]
}

var chat = load.Kind{API: load.Chat, Model: "demo", Stream: true, OutputTokens: 3}

func requests(t *testing.T, kind load.Kind, prefixes, uses int) []load.Request {
	t.Helper()
	prompts, err := load.Shared{Prefixes: prefixes, Uses: uses, PrefixChars: 3200, SuffixChars: 64, Seed: 1}.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	q, err := kind.Requests(prompts)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// one sends a single request and returns what it met.
func one(t *testing.T, s load.Sender) load.Outcome {
	t.Helper()
	return s.Send(t.Context(), &requests(t, chat, 1, 1)[0], time.Now())
}

func TestRunMeasuresWhatTheReplicaSaw(t *testing.T) {
	times := make([]time.Duration, 40)
	for i := range times {
		times[i] = time.Duration(i) * 500 * time.Microsecond
	}
	loads := map[string]load.Load{"closed": {Concurrency: 8}, "open": {Rate: 2000, Seed: 1}, "trace": {Times: times}}
	for name, l := range loads {
		// One request at a time, so exactly the first use of each prefix misses.
		single := engine.Llama70B()
		single.MaxSequences = 1
		f := fleet(t, replica.Params{Engine: single, TimeScale: 1000})
		for sender, s := range senders(t, "http://"+f.Addresses()[0], nil) {
			t.Run(name+" by "+sender, func(t *testing.T) {
				f.ResetStats()
				f.ClearCaches()
				var outcomes []load.Outcome
				l.Observe = func(o load.Outcome) { outcomes = append(outcomes, o) }
				result, err := load.Run(t.Context(), s, requests(t, chat, 4, 10), l)
				if err != nil {
					t.Fatal(err)
				}
				got, truth := result.Summary(), f.Stats()[0]
				if got.Requests != 40 || got.Failed != 0 || truth.Started != 40 || len(outcomes) != 40 {
					t.Errorf("requests %d, failed %v, replica started %d", got.Requests, got.Errors, truth.Started)
				}
				if want := truth.HitRate; got.HitRate != want || want < 0.85 || want > 0.9 {
					t.Errorf("hit rate %v, the replica's %v, want about 0.88", got.HitRate, want)
				}
				if len(got.Shares) != 1 || got.Shares[0].Replica != f.Addresses()[0] || got.BusiestOverMean != 1 {
					t.Errorf("shares %+v", got.Shares)
				}
				for _, o := range outcomes {
					if o.TTFT <= 0 || o.TTFT > o.Latency || o.Start < 0 || o.Start+o.Latency > result.Elapsed || o.OutputTokens != 3 {
						t.Errorf("outcome %+v in %v", o, result.Elapsed)
					}
				}
			})
		}
	}
}

// Every kind of request is one that the replica understands, streamed or not.
func TestKindsAreServed(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	for _, api := range []load.API{load.Chat, load.Completions, load.Invoke} {
		for _, stream := range []bool{false, true} {
			for sender, s := range senders(t, "http://"+f.Addresses()[0], nil) {
				kind := load.Kind{API: api, Model: "m", Stream: stream, OutputTokens: 3, ModelLast: stream}
				result, err := load.Run(t.Context(), s, requests(t, kind, 1, 2), load.Load{Concurrency: 1})
				if err != nil {
					t.Fatal(err)
				}
				got := result.Summary()
				if got.Requests != 2 || got.Failed != 0 || (got.TTFT.P50 > 0) != stream || got.OutputTokensPerSecond == 0 {
					t.Errorf("%s of %+v: %+v", sender, kind, got)
				}
			}
		}
	}
}

// The list is gone through again until the count or the time is reached.
func TestCountAndDuration(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	s := client(t, "http://"+f.Addresses()[0], nil)
	for name, c := range map[string]struct {
		load        load.Load
		least, most int
	}{
		"count":         {load.Load{Concurrency: 3, Count: 7}, 7, 7},
		"count of open": {load.Load{Rate: 5000, Count: 7}, 7, 7},
		"less than all": {load.Load{Concurrency: 3, Count: 2}, 2, 2},
		"duration":      {load.Load{Concurrency: 3, Duration: 100 * time.Millisecond}, 4, 100_000},
		"both":          {load.Load{Concurrency: 3, Count: 7, Duration: time.Minute}, 7, 7},
	} {
		result, err := load.Run(t.Context(), s, requests(t, chat, 1, 3), c.load)
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Summary(); got.Requests < c.least || got.Requests > c.most || got.Failed > 0 {
			t.Errorf("%s: %d requests, errors %v", name, got.Requests, got.Errors)
		}
	}
}

// stalled is a gateway that holds up all requests until a moment is reached.
type stalled struct{ until time.Time }

func (s stalled) Send(_ context.Context, _ *load.Request, begin time.Time) load.Outcome {
	<-time.NewTimer(time.Until(s.until)).C // fake time
	return load.Outcome{Latency: time.Since(begin)}
}

// A gateway that stalls for a second makes the requests of that second late, each
// by as much as it was to be sent before the end: none is left out.
func TestNoCoordinatedOmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := make([]time.Duration, 100)
		for i := range times {
			times[i] = time.Duration(i) * 10 * time.Millisecond
		}
		s := stalled{time.Now().Add(time.Second)}
		result, err := load.Run(t.Context(), s, make([]load.Request, 100), load.Load{Times: times})
		if err != nil {
			t.Fatal(err)
		}
		got := result.Summary().Latency
		if got.P50 < 490*time.Millisecond || got.P50 > 510*time.Millisecond || got.P99 < 980*time.Millisecond {
			t.Errorf("P50 %v and P99 %v, want about 500 ms and 990 ms", got.P50, got.P99)
		}
	})
}

// Waiting for one of few connections counts.
func TestWireCountsTheWait(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	w := load.NewWire(f.Addresses()[0], 1)
	defer w.Close()
	held := make(chan load.Outcome)
	q := requests(t, chat, 1, 1)[0]
	for range 2 {
		go func() { held <- w.Send(t.Context(), &q, time.Now().Add(-time.Minute)) }()
	}
	for range 2 {
		if o := <-held; o.Err != "" || o.Latency < time.Minute || o.TTFT < time.Minute {
			t.Errorf("outcome %+v of a request that is a minute late", o)
		}
	}
}

func TestTTFTIsTheFirstContent(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	header := http.Header{"x-replica-first-token-ms": {"120"}}
	// Headers come at once; a TTFT below the delay would be theirs.
	if o := one(t, client(t, "http://"+f.Addresses()[0], header)); o.Err != "" || o.TTFT < 120*time.Millisecond {
		t.Errorf("%+v before the first token at 120 ms", o)
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
	for name, sender := range senders(t, s.URL, nil) {
		if o := one(t, sender); o.Err != "" || o.TTFT < 100*time.Millisecond {
			t.Errorf("%s: outcome %+v: content came after 100 ms", name, o)
		}
	}
}

func TestFailuresAreNamed(t *testing.T) {
	f := fleet(t, replica.Params{TimeScale: 1000})
	for want, header := range map[string]http.Header{
		"status 503":     {"x-replica-status": {"503"}},
		"EOF":            {"x-replica-reset": {"before"}},
		"unexpected EOF": {"x-replica-reset": {"mid"}},
	} {
		if got := one(t, client(t, "http://"+f.Addresses()[0], header)).Err; got != want {
			t.Errorf("%v: error %q, want %q", header, got, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, s := range senders(t, "http://"+f.Addresses()[0], nil) {
		if got := one(t, s).Err; got != "connection refused" {
			t.Errorf("%s to a closed port: error %q", name, got)
		}
	}
}

// After an answer of any kind the next request of the same connection is served.
func TestWireGoesOn(t *testing.T) {
	var served atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch served.Add(1) {
		case 1:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.Header().Set("Connection", "close")
			fallthrough
		default:
			_, _ = w.Write([]byte(`data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\ndata: [DONE]\n\n"))
		}
	}))
	defer s.Close()
	w := load.NewWire(strings.TrimPrefix(s.URL, "http://"), 1)
	defer w.Close()
	for i, want := range []string{"status 503", "unexpected EOF", "", "", ""} {
		if got := one(t, w).Err; got != want {
			t.Errorf("request %d: error %q, want %q", i+1, got, want)
		}
	}
}

func TestIncompleteStreamsFail(t *testing.T) {
	content := `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	for name, tc := range map[string]struct{ body, want string }{
		"no end":     {content, "stream ended before its last event"},
		"no content": {"data: [DONE]\n\n", "stream has no content"},
		"not JSON":   {"data: {\n\n", "stream has an event that is no chunk of a completion"},
		"complete":   {": comment\n\n" + content + "data: [DONE]\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(tc.body))
			}))
			defer s.Close()
			for name, sender := range senders(t, s.URL, nil) {
				if got := one(t, sender).Err; got != tc.want {
					t.Errorf("%s: error %q, want %q", name, got, tc.want)
				}
			}
		})
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	for name, l := range map[string]load.Load{"closed": {Concurrency: 5, Count: 100_000}, "open": {Rate: 1000, Count: 100_000}} {
		t.Run(name, func(t *testing.T) {
			f := fleet(t, replica.Params{TimeScale: 1000})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := client(t, "http://"+f.Addresses()[0], http.Header{"x-replica-hold": {"1"}})
			go func() {
				for f.Stats()[0].Held < 5 && ctx.Err() == nil {
					<-time.After(time.Millisecond)
				}
				cancel()
			}()
			result, err := load.Run(ctx, c, requests(t, chat, 1, 1), l)
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

// A request on the wire is given up too.
func TestWireStopsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	w := load.NewWire(strings.TrimPrefix(s.URL, "http://"), 1)
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	result, err := load.Run(ctx, w, requests(t, chat, 1, 2), load.Load{Concurrency: 2})
	if !errors.Is(err, context.DeadlineExceeded) || result.Summary().Errors["deadline exceeded"] != 2 {
		t.Errorf("error %v, %+v", err, result.Summary())
	}
}

func TestLoadRejects(t *testing.T) {
	for _, l := range []load.Load{
		{},
		{Concurrency: 1, Rate: 1},
		{Concurrency: -1, Rate: 1},
		{Rate: -1},
		{Rate: 1, Times: []time.Duration{1}},
		{Times: []time.Duration{1, 2}},
		{Concurrency: 1, Count: -1},
	} {
		if _, err := load.Run(t.Context(), nil, make([]load.Request, 1), l); err == nil || !strings.Contains(err.Error(), "load with") {
			t.Errorf("%+v: error %v", l, err)
		}
	}
	if _, err := load.Run(t.Context(), nil, nil, load.Load{Concurrency: 1}); err == nil {
		t.Error("a load without requests is accepted")
	}
}
