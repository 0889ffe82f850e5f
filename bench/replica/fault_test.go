package replica

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func setFault(t *testing.T, r *Replica, f Fault) {
	t.Helper()
	if err := r.SetFault(f); err != nil {
		t.Error(err)
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		setFault(t, r, Fault{Kind: Slow, Factor: 3, Health: true})
		wantTimes(t, "tokens", complete(t.Context(), r, "p", 100, 2, true).tokens, 345, 405)
		wantTimes(t, "timed tokens", complete(t.Context(), r, "q", 100, 2, true, "x-replica-first-token-ms", "9", "x-replica-token-ms", "4").tokens, 9, 13)
		w := httptest.NewRecorder()
		begin := time.Now()
		if r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil)); w.Code != http.StatusOK || time.Since(begin) != 0 {
			t.Errorf("health %d after %v", w.Code, time.Since(begin))
		}
		go func() {
			_ = sleep(t.Context(), 100*time.Millisecond)
			setFault(t, r, Fault{})
		}()
		// Front end 15, a prefill of 120 that has begun, then decodes at full speed.
		wantTimes(t, "tokens", complete(t.Context(), r, "o", 30, 3, true).tokens, 135, 155, 175)
	})
}

func TestHangStopsTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		var second *watcher
		go func() {
			_ = sleep(t.Context(), 120*time.Millisecond) // between the first token and the second
			setFault(t, r, Fault{Kind: Hang})
			go func() { second = complete(t.Context(), r, "p", 100, 1, true) }()
			_ = sleep(t.Context(), time.Second)
			setFault(t, r, Fault{Kind: Hang}) // again: nothing changes
			if s := r.Stats(); s.Outstanding != 2 || s.PromptTokens != 100 {
				t.Errorf("while hanging %+v", s)
			}
			_ = sleep(t.Context(), time.Second)
			setFault(t, r, Fault{Kind: NoFault})
		}()
		w := complete(t.Context(), r, "p", 100, 4, true)
		// The second token is due when all goes on, at 2120; the second request is
		// admitted to the step that begins at 2140, for 4 tokens more.
		wantTimes(t, "tokens", w.tokens, 115, 2120, 2140, 2164)
		synctest.Wait()
		wantTimes(t, "headers and token of the second", []time.Duration{second.headers, second.tokens[0]}, 2000, 2044)
	})
}

// A request whose front end ends while the engine stands still begins after it.
func TestHangHoldsUpTheFrontEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plain(t)
		go func() {
			_ = sleep(t.Context(), time.Millisecond)
			setFault(t, r, Fault{Kind: Hang})
			_ = sleep(t.Context(), time.Second)
			setFault(t, r, Fault{Kind: Slow, Factor: 2})
		}()
		wantTimes(t, "tokens", complete(t.Context(), r, "p", 100, 2, true).tokens, 1001+220, 1001+260)
	})
}

func TestSetFaultRefuses(t *testing.T) {
	r := plain(t)
	for _, f := range []Fault{{Kind: "tired"}, {Kind: Slow}, {Kind: Slow, Factor: -1}, {Kind: Slow, Factor: 2 * maxFactor}} {
		if err := r.SetFault(f); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
	if f := r.Fault(); f != (Fault{Kind: NoFault}) {
		t.Errorf("fault %+v", f)
	}
}
