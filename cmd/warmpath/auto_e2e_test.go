package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// With prefixLength auto a system prompt that all have in common, longer than any
// sensible length, decides nothing: conversations spread, and stay where they are
// while they grow. Not every one: requests come faster here than real endpoints
// could prefill them, so that some are relieved.
func TestAutoThroughEnvoy(t *testing.T) {
	t.Parallel()
	config := prefixAware(0)
	config.PrefixLength = route.AutoPrefixLength
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5, Config: config})
	system := strings.Repeat("You are a helpful assistant with many rules. ", 700) // 31,500 characters
	ask := func(talk string, turns int) string {
		t.Helper()
		body := chat(system, strings.Repeat(fmt.Sprintf("Talk %s goes on and on. ", talk), 60*turns), false)
		got, err := served(t.Context(), s, "/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i := range 60 {
		ask(fmt.Sprint("early ", i), 1)
	}
	// Where 20 conversations have their homes by chance, two replicas or fewer have all of
	// them once in ten million runs.
	const talks = 20
	used, moved := make(map[string]bool), 0
	for talk := range talks {
		home := ask(fmt.Sprint(talk), 1)
		used[home] = true
		for turn := 2; turn <= 5; turn++ {
			if got := ask(fmt.Sprint(talk), turn); got != home {
				moved++
				home = got
			}
		}
	}
	if moved > 10 {
		t.Errorf("%d of 80 times a conversation went elsewhere", moved)
	}
	if len(used) < 3 {
		t.Errorf("%d conversations are served by %d replicas of 5", talks, len(used))
	}
	// KV_AWARE knows what the strategy before it has sent where.
	last := make(map[int]string)
	for talk := range talks {
		last[talk] = ask(fmt.Sprint(talk), 6)
	}
	if err := s.SetConfig(t.Context(), stack.Config{Strategy: "KV_AWARE"}); err != nil {
		t.Fatal(err)
	}
	moved = 0
	for talk := range talks {
		if ask(fmt.Sprint(talk), 7) != last[talk] {
			moved++
		}
	}
	if moved > 3 {
		t.Errorf("KV_AWARE: %d of %d conversations went elsewhere", moved, talks)
	}
	if n := metric(t, s, "warmpath_decisions_total", `reason="warm"`, `strategy="KV_AWARE"`); n < 15 {
		t.Errorf("%v decisions by what is warm", n)
	}
	atRest(t, s)
	noMisses(t, s)
	status, err := s.Status(t.Context())
	if err != nil || status.Config.Strategy != "KV_AWARE" {
		t.Errorf("status %+v (%v)", status.Config, err)
	}
}
