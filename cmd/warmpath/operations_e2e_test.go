package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// A model moves to a pool of its own while its requests run, and back: its servers
// are in both pools until warmpath has been restarted.
func TestModelMovesToAPool(t *testing.T) {
	members := filepath.Join(t.TempDir(), "llama.yaml")
	config := prefixAware(1000)
	config.Extra = quickHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 6, Config: config})
	before := goroutines(t, s)
	all := stack.Endpoints(s.Replicas.Addresses()...)
	own := all[3:]
	if err := os.WriteFile(members, []byte(stack.EndpointsText(own)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := startSteadyLoad(t, s)
	l.underway(t)

	with := config
	with.Extra += fmt.Sprintf("\npools:\n- name: llama\n  models: [\"llama-*\"]\n  routingConfig: {routingStrategy: PREFIX_AWARE}\n  health: {interval: 200ms, timeout: 500ms, slowStart: 0s}\n  membership: {file: %q}\n", members)
	if err := s.SetConfig(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "warmpath to say that pools wait for a restart", func() error {
		if out := s.Warmpath.Output(); !strings.Contains(out, "take effect at a restart") {
			return errors.New(out)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.restartInOrder(t)
	if err := s.Await(t.Context(), "the pool to serve", func() error {
		status, err := s.Status(t.Context())
		if err == nil && (len(status.Pools) != 1 || healthy(status.Pools[0].Endpoints) != len(own)) {
			err = fmt.Errorf("pools %+v", status.Pools)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	first := int(l.next.Load())
	becomes(t, s, all[:3]) // nobody there is asked for the model any more
	l.more(t, 30)
	for _, q := range l.since(first) {
		if !slices.Contains(own, stack.Endpoints(q.replica)[0]) {
			t.Errorf("%s %d was served by %s, which is not in the pool", q.form.name, q.n, q.replica)
		}
	}

	becomes(t, s, all) // and back
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	l.underway(t)
	l.restartInOrder(t)
	l.more(t, 30)
	l.settled(t, before, nil)
}

// since are the requests after the nth that a replica has answered.
func (l *workload) since(n int) []*sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var later []*sent
	for _, q := range l.done {
		if q.n > n+8 && q.replica != "" { // one for each client was under way
			later = append(later, q)
		}
	}
	return later
}

// restartInOrder ends warmpath by a signal, and starts it again.
func (l *workload) restartInOrder(t *testing.T) {
	t.Helper()
	if err := l.s.Warmpath.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	l.restart(t)
}

// Weights and the threshold change while requests run, and the shares follow.
func TestWeightsAndThresholdChangeLive(t *testing.T) {
	config := stack.Config{Strategy: "RANDOM", Extra: noHealth}
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: config})
	both := stack.Endpoints(s.Replicas.Addresses()...)
	tr := startTraffic(t, s, 2)
	share := func(low, high float64) {
		t.Helper()
		const n = 200
		second := 0
		for range n {
			got, err := served(t.Context(), s, "/v1/chat/completions", chat("short", "q", false))
			if err != nil {
				t.Fatal(err)
			}
			if got == both[1].Address {
				second++
			}
		}
		if part := float64(second) / n; part < low || part > high {
			t.Errorf("with weights %d and %d the second has %.2f, want %.2f to %.2f", both[0].Weight, both[1].Weight, part, low, high)
		}
	}
	share(0.35, 0.65)
	both[1].Weight = 9
	generation := membershipVersion(t, s)
	if err := s.WriteEndpoints(both); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the weights", func() error {
		if now := membershipVersion(t, s); now == generation {
			return fmt.Errorf("version is still %s", now)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	share(0.8, 0.98)

	config = prefixAware(100)
	config.Extra = noHealth
	for threshold, want := range map[int]int{100: 1, 1: 2} {
		config.ConcurrencyThreshold = threshold
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		open, counts := holdOpen(t, s, mixed[1].body(0), 6)
		if len(counts) != want {
			t.Errorf("with a threshold of %d six streams of a prefix are at %v, want %d replicas", threshold, counts, want)
		}
		open.close()
	}
	tr.end()
	noMisses(t, s)
	atRest(t, s)
}

// membershipVersion tells one membership from another.
func membershipVersion(t *testing.T, s *stack.Stack) string {
	t.Helper()
	status, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.Membership.Version
}
