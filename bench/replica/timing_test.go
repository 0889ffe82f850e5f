package replica

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// plain makes times that one can add up by hand: 5 ms front end, prefill 10 ms
// and 1 ms a token, 20 ms a decode step.
func plain(t *testing.T) *Replica {
	t.Helper()
	r, err := New(Params{Engine: engine.Params{
		StepTime: 10 * time.Millisecond, PrefillToken: time.Millisecond, DecodeSequence: 10 * time.Millisecond,
		FrontEnd: 5 * time.Millisecond, StepTokens: 1000, KVTokens: 10_000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watcher is a ResponseWriter that notes when things came out.
type watcher struct {
	*httptest.ResponseRecorder
	begin   time.Time
	headers time.Duration
	tokens  []time.Duration
}

func (w *watcher) WriteHeader(status int) {
	w.headers = time.Since(w.begin)
	w.ResponseRecorder.WriteHeader(status)
}

func (w *watcher) Write(b []byte) (int, error) {
	if strings.Contains(string(b), `"text":`) {
		w.tokens = append(w.tokens, time.Since(w.begin))
	}
	return w.ResponseRecorder.Write(b)
}

// complete sends a prompt of tokens tokens that all begin with name.
func complete(ctx context.Context, r *Replica, name string, tokens, output int, stream bool, headers ...string) *watcher {
	prompt := (name + strings.Repeat("x", 4*tokens))[:4*tokens]
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"stream":%t}`, prompt, output, stream)
	req := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body)).WithContext(ctx)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := &watcher{ResponseRecorder: httptest.NewRecorder(), begin: time.Now()}
	r.ServeHTTP(w, req)
	return w
}

func wantTimes(t *testing.T, what string, got []time.Duration, wantMS ...int) {
	t.Helper()
	want := make([]time.Duration, len(wantMS))
	for i, ms := range wantMS {
		want[i] = time.Duration(ms) * time.Millisecond
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

func TestStreamTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		w := complete(t.Context(), r, "p", 100, 3, true)
		wantTimes(t, "headers", []time.Duration{w.headers}, 0)
		wantTimes(t, "tokens of a cold prompt", w.tokens, 115, 135, 155)
		w = complete(t.Context(), r, "p", 100, 3, true) // 96 of 100 tokens cached
		wantTimes(t, "tokens of a warm prompt", w.tokens, 19, 39, 59)
		w = complete(t.Context(), r, "p", 100, 3, false)
		wantTimes(t, "headers of a plain answer", []time.Duration{w.headers}, 59)
	})
}

func TestControlTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := complete(t.Context(), plain(t), "p", 100, 3, true, "x-replica-delay-ms", "7",
			"x-replica-first-token-ms", "50", "x-replica-token-ms", "1", "x-replica-tokens", "4")
		wantTimes(t, "headers", []time.Duration{w.headers}, 7)
		wantTimes(t, "tokens", w.tokens, 57, 58, 59, 60)
	})
}

func TestTimeScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plain(t).params
		p.TimeScale = 5
		r, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		wantTimes(t, "tokens", complete(t.Context(), r, "p", 100, 3, true).tokens, 23, 27, 31)
	})
}

func TestPrefillsQueueFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		first := make([]time.Duration, 4)
		begin := time.Now()
		for i := range first {
			go func() {
				w := complete(t.Context(), r, fmt.Sprint(i), 90, 1, true)
				first[i] = w.begin.Sub(begin) + w.tokens[0]
			}()
			if err := sleep(t.Context(), time.Millisecond); err != nil {
				t.Error(err)
			}
		}
		if s := r.Stats(); s.Outstanding != 4 {
			t.Errorf("outstanding %d, want 4", s.Outstanding)
		}
		_ = sleep(t.Context(), time.Second)
		synctest.Wait()
		wantTimes(t, "first tokens", first, 105, 205, 305, 405)
	})
}

func TestSimultaneousEqualPromptsWaitForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		for range 3 {
			go complete(t.Context(), r, "same", 100, 1, false)
		}
		_ = sleep(t.Context(), time.Second)
		if s := r.Stats(); s.PromptTokens != 300 || s.CachedTokens != 192 {
			t.Errorf("%d of %d tokens cached, want 192 of 300", s.CachedTokens, s.PromptTokens)
		}
	})
}

func TestClientsThatLeaveFreeTheirPlace(t *testing.T) {
	for name, leave := range map[string]time.Duration{
		"in the front end": 2 * time.Millisecond, "in the queue": 50 * time.Millisecond, "in prefill": 150 * time.Millisecond,
		"in decode": 250 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := plain(t)
				go complete(t.Context(), r, "a", 90, 1, true) // prefilled from 5 to 105
				ctx, cancel := context.WithTimeout(t.Context(), leave)
				defer cancel()
				go complete(ctx, r, "b", 90, 1000, true) // prefilled from 105 to 205, decoding after
				_ = sleep(t.Context(), leave+time.Millisecond)
				if s := r.Stats(); s.Aborted != 1 || s.Outstanding != s.Started-s.Finished || s.Outstanding > 1 {
					t.Errorf("after leaving: %+v", s)
				}
				_ = sleep(t.Context(), time.Second)
				w := complete(t.Context(), r, "c", 90, 2, true)
				wantTimes(t, "tokens of the next request", w.tokens, 105, 125)
			})
		})
	}
}

func TestAbortedPrefillCachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		complete(ctx, r, "p", 100, 1, true)
		complete(t.Context(), r, "p", 100, 1, true)
		if s := r.Stats(); s.PromptTokens != 100 || s.CachedTokens != 0 {
			t.Errorf("%d of %d tokens cached, want 0 of 100", s.CachedTokens, s.PromptTokens)
		}
	})
}

// A decode step is part of the engine step that also prefills: it ends with it.
// (The fourth token depends on whether the other request has left by then.)
func TestPrefillHoldsUpDecodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), 20*time.Millisecond)
			complete(t.Context(), r, "other", 190, 1, true) // prefilled from 25 to 225
		}()
		w := complete(t.Context(), r, "p", 1, 4, true)
		wantTimes(t, "tokens", w.tokens[:3], 16, 36, 225)
	})
}
