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
	return made(t, plainParams())
}

func plainParams() Params {
	return Params{Engine: engine.Params{
		StepTime: 10 * time.Millisecond, PrefillToken: time.Millisecond, DecodeSequence: 10 * time.Millisecond,
		FrontEnd: 5 * time.Millisecond, StepTokens: 1000, MaxSequences: 100, BlockTokens: 16, KVTokens: 10_000,
	}}
}

func made(t *testing.T, p Params) *Replica {
	t.Helper()
	r, err := New(p)
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
		p := plainParams()
		p.TimeScale = 5
		r := made(t, p)
		wantTimes(t, "tokens", complete(t.Context(), r, "p", 100, 3, true).tokens, 23, 27, 31)
	})
}

// What waits when a step ends is prefilled in the next, as far as its budget goes.
func TestPrefillsQueueFirstComeFirstServed(t *testing.T) {
	for budget, want := range map[int][]int{
		1000: {105, 385, 385, 385}, // all that has come: 10 ms and 3 times 90
		90:   {105, 205, 305, 405},
		135:  {105, 250, 395, 395}, // a half of the third with the second
	} {
		synctest.Test(t, func(t *testing.T) {
			p := plainParams()
			p.Engine.StepTokens, p.Engine.MaxSequences = budget, 10
			r := made(t, p)
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
			wantTimes(t, fmt.Sprintf("first tokens with a budget of %d", budget), first, want...)
		})
	}
}

// Those that come while the first is computed are admitted when it is there.
func TestEqualPromptsWaitForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		for range 3 {
			go complete(t.Context(), r, "same", 100, 1, false)
			_ = sleep(t.Context(), time.Millisecond)
		}
		_ = sleep(t.Context(), time.Second)
		if s := r.Stats(); s.PromptTokens != 300 || s.CachedTokens != 192 {
			t.Errorf("%d of %d tokens cached, want 192 of 300", s.CachedTokens, s.PromptTokens)
		}
	})
}

// A response that is held does not hold up the engine.
func TestHeldResponseIsGeneratedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), time.Second)
			if c := r.worker.counters(); c.Running != 0 || c.GeneratedTokens != 3 {
				t.Errorf("while held %+v", c)
			}
			r.Release()
		}()
		w := complete(t.Context(), r, "p", 100, 3, true, "x-replica-hold", "1")
		wantTimes(t, "tokens", w.tokens, 115, 1000, 1000)
	})
}

// A release between the request and its hold is for it too: a client that has seen the
// response begin cannot know whether it is held yet.
func TestReleaseBeforeTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), 50*time.Millisecond)
			r.Release()
		}()
		w := complete(t.Context(), r, "p", 100, 3, true, "x-replica-hold", "1")
		wantTimes(t, "tokens", w.tokens, 115, 135, 155)
	})
}

// A step that began late is not made up for by more than 20 ms.
func TestEngineDoesNotHurryAfterADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), 40*time.Millisecond)
			r.worker.mu.Lock()
			defer r.worker.mu.Unlock()
			r.worker.next = r.worker.next.Add(-200 * time.Millisecond) // as if its timer had fired so late
		}()
		w := complete(t.Context(), r, "p", 1, 6, true)
		wantTimes(t, "tokens", w.tokens, 16, 36, 56, 56, 76, 96)
	})
}

// A timer that had fired when it was set anew ends no step.
func TestStaleTimerDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), 50*time.Millisecond)
			r.worker.tick()
		}()
		wantTimes(t, "tokens", complete(t.Context(), r, "p", 100, 2, true).tokens, 115, 135)
	})
}

// A request with times of its own takes none from the engine, but is counted.
func TestTimedRequestsRunBesideTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go complete(t.Context(), r, "other", 5000, 50, true, "x-replica-first-token-ms", "1", "x-replica-token-ms", "10")
		_ = sleep(t.Context(), 2*time.Millisecond)
		w := complete(t.Context(), r, "p", 100, 2, true)
		wantTimes(t, "tokens", w.tokens, 115, 135)
		if c := r.worker.counters(); c.Running != 1 || c.PromptTokens != 5100 || c.PinnedBlocks != 0 {
			t.Errorf("counters %+v", c)
		}
		w = complete(t.Context(), r, "other", 5000, 1, true)
		wantTimes(t, "token of a prompt that it has left in the cache", w.tokens, 5+10+8)
		_ = sleep(t.Context(), time.Second)
		if c := r.worker.counters(); c.Running != 0 || c.GeneratedTokens != 53 {
			t.Errorf("at the end %+v", c)
		}
		next := engine.NewPrompt(16, ("other" + strings.Repeat("x", 20_000))[:20_000]+text(50)+" and then", "", "")
		if got := r.worker.lookup(next); got != 5040 {
			t.Errorf("%d tokens of its next turn are cached, want all full blocks, 5040", got)
		}
	})
}

// Only the time per token is given: the first token is the engine's.
func TestTokenTimesAfterTheEnginesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := complete(t.Context(), plain(t), "p", 100, 3, true, "x-replica-token-ms", "7")
		wantTimes(t, "tokens", w.tokens, 115, 122, 129)
		w = complete(t.Context(), plain(t), "p", 100, 3, true, "x-replica-first-token-ms", "7")
		wantTimes(t, "tokens after a given first", w.tokens, 7, 27, 47)
	})
}

func TestTooLongForTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := complete(t.Context(), plain(t), "p", 9_000, 1001, true)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "10001 tokens, answer included: want at most 10000") {
			t.Errorf("%d %s", w.Code, w.Body)
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
				_ = sleep(t.Context(), time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), leave)
				defer cancel()
				go complete(ctx, r, "b", 90, 1000, true) // prefilled from 105 to 205, decodes after that
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

// A decode is part of the engine step that also prefills: it lasts as long.
func TestPrefillHoldsUpDecodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), 20*time.Millisecond)
			complete(t.Context(), r, "other", 190, 1, true) // comes at 25, is prefilled from 36 to 246
		}()
		w := complete(t.Context(), r, "p", 1, 5, true)
		wantTimes(t, "tokens", w.tokens, 16, 36, 246, 266, 286)
	})
}
