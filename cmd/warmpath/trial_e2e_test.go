package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// trialRounds sends turns of conversations, each answered, and others that clients leave
// before they are.
func trialRounds(t *testing.T, s *stack.Stack, turns int) (answered float64) {
	t.Helper()
	for turn := range turns {
		for c := range 10 {
			system := strings.Repeat(fmt.Sprintf("Rule %d of the house. ", c), 100)
			r, err := post(t.Context(), s, "/v1/chat/completions", usageOf("/v1/chat/completions", system, strings.Repeat("More. ", 50*turn), true))
			if err != nil {
				t.Fatal(err)
			}
			if text := readAll(t, r); r.StatusCode != http.StatusOK {
				t.Fatalf("%s %.200s", r.Status, text)
			}
			answered++
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r, err := post(ctx, s, "/v1/chat/completions", chat("Left.", "q", false), "x-replica-hold", "1")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v: it should have been left", r, err)
		}
		cancel()
	}
	return answered
}

// Before a policy is taken over: a shadow foretells its hit rate, and half of the
// conversations have it. What it would do is what it does; nothing stays behind in its
// world, though clients leave and the configuration changes while
// requests run.
func TestPolicyOnTrial(t *testing.T) {
	t.Parallel()
	config := stack.Config{Extra: noHealth + "\nshadow: {share: 1, routingStrategy: PREFIX_AWARE}"}
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: config, Inspect: 1})
	const turns = 4
	answered := trialRounds(t, s, turns)
	atRest(t, s)
	rate := func(kind, label, whose string) float64 {
		label = fmt.Sprintf("%s=%q", label, whose)
		return metric(t, s, "warmpath_"+kind+"_expected_cached_characters_total", label) / metric(t, s, "warmpath_"+kind+"_prompt_characters_total", label)
	}
	real, foretold := rate("shadow", "policy", "real"), rate("shadow", "policy", "shadow")
	actual := metric(t, s, cachedTokens) / metric(t, s, promptTokens)
	if n := metric(t, s, "warmpath_shadow_decisions_total", `policy="shadow"`); n != answered+turns {
		t.Errorf("the shadow decided %v times, want %v", n, answered+turns)
	}
	if foretold < 0.65 || real > foretold-0.1 || actual < real-0.1 || actual > real+0.1 {
		t.Errorf("expected hits %.3f now, %.3f in the engines, %.3f foretold", real, actual, foretold)
	}
	if metric(t, s, "warmpath_decisions_total", `strategy="PREFIX_AWARE"`) != 0 {
		t.Error("the shadow decided")
	}
	if page, err := s.Admin(t.Context(), "/status"); err != nil || !strings.Contains(string(page), `"kind": "shadow"`) && !strings.Contains(string(page), `"kind":"shadow"`) {
		t.Errorf("%v, no shadow in %s", err, page)
	}

	// Requests that run while the configuration changes.
	held := make(chan error)
	for range 3 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := post(ctx, s, "/v1/chat/completions", chat("Held.", "q", false), "x-replica-hold", "1")
			held <- err
		}()
	}
	if err := s.Await(t.Context(), "requests that run", func() error {
		if n := metric(t, s, "warmpath_shadow_outstanding_requests"); n != 3 {
			return fmt.Errorf("the shadow has %v outstanding", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	config.Extra = noHealth + "\nshadow: {share: 1, routingStrategy: KV_AWARE}\nsplit: {share: 0.5, routingStrategy: PREFIX_AWARE}"
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-held; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: it should have been left", err)
		}
	}
	answered = trialRounds(t, s, turns)
	atRest(t, s)
	var decided float64
	for _, arm := range []string{"main", "split"} {
		label := fmt.Sprintf("arm=%q", arm)
		n := metric(t, s, "warmpath_split_decisions_total", label)
		if decided += n; n < 4*turns {
			t.Errorf("%v decisions of arm %s", n, arm)
		}
		if metric(t, s, "warmpath_split_inspected_prompt_tokens_total", label) == 0 {
			t.Errorf("no inspected tokens of arm %s", arm)
		}
	}
	if decided != answered+turns {
		t.Errorf("%v decisions of both arms, want %v", decided, answered+turns)
	}
	if main, split := rate("split", "arm", "main"), rate("split", "arm", "split"); split < main {
		t.Errorf("expected hits %.3f of the main arm, %.3f of the split", main, split)
	}
	config.Extra = noHealth
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	trialRounds(t, s, 1)
	atRest(t, s)
	if n := metric(t, s, "warmpath_split_decisions_total"); n != decided {
		t.Errorf("%v decisions of a split that is off, %v while it was on", n, decided)
	}
	if n := metric(t, s, "warmpath_shadow_outstanding_requests"); n != 0 {
		t.Errorf("the shadow has %v outstanding at the end", n)
	}
}
