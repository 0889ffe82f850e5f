package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// quickHealth probes fast enough for a test.
const quickHealth = "health: {interval: 200ms, timeout: 500ms, slowStart: 0s}"

// endpointIs waits until /status says a state and a health of an endpoint.
func endpointIs(t *testing.T, s *stack.Stack, address, state string) {
	t.Helper()
	if err := s.Await(t.Context(), address+" to be "+state, func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		for _, e := range status.Endpoints {
			if e.Address == address && e.State == state {
				return nil
			}
		}
		return fmt.Errorf("endpoints %+v", status.Endpoints)
	}); err != nil {
		t.Fatal(err)
	}
}

// A replica dies: its keys move to their second homes, no request is tried on it
// any more, Envoy knows too, and when it is back its keys are.
func TestDeadReplicaIsLeftAlone(t *testing.T) {
	t.Parallel()
	config := prefixAware(0)
	config.Extra = quickHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: config})
	body := chat(strings.Repeat("Its home dies. ", 100), "q", true)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homes[0] {
		t.Fatalf("served by %s (%v), home is %s", got, err, homes[0])
	}
	if err := s.Replicas.Stop(homes[0]); err != nil {
		t.Fatal(err)
	}
	endpointIs(t, s, homes[0], "unhealthy")
	retried, err := s.Metric(t.Context(), "warmpath_retried_total")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homes[1] {
			t.Fatalf("served by %s (%v), the second home is %s", got, err, homes[1])
		}
	}
	if n, err := s.Metric(t.Context(), "warmpath_retried_total"); err != nil || n != retried {
		t.Errorf("%v requests were tried on the dead replica first (%v)", n-retried, err)
	}
	if err := s.Await(t.Context(), "Envoy to know", func() error {
		clusters, err := s.EnvoyAdmin(t.Context(), "/clusters")
		if err != nil {
			return err
		}
		if !strings.Contains(string(clusters), homes[0]+"::health_flags::/failed_eds_health") {
			return fmt.Errorf("Envoy does not say that %s failed", homes[0])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	atRest(t, s)
}

// When probes fail everywhere, all endpoints are used as if nobody had probed.
func TestProbesThatFailEverywhere(t *testing.T) {
	t.Parallel()
	config := prefixAware(0)
	config.Extra = "health: {path: /no-such-path, interval: 200ms, slowStart: 0s}"
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: config})
	if err := s.Await(t.Context(), "the panic", func() error {
		if n, err := s.Metric(t.Context(), "warmpath_health_panic"); err != nil || n != 1 {
			return fmt.Errorf("warmpath_health_panic = %v (%v)", n, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		body := chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", i), 150), "q", false)
		if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homesOf(t, s, "/v1/chat/completions", body)[0] {
			t.Errorf("request %d served by %s (%v), not at home", i, got, err)
		}
	}
	noMisses(t, s)
}

// A replica whose probes are fine but whose requests fail is left alone for a
// while.
func TestFailingRequestsEject(t *testing.T) {
	t.Parallel()
	config := prefixAware(0)
	config.Extra = "health: {path: \"\", failedRequests: 5, slowStart: 0s}\nretry: {attempts: 0}"
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: config})
	body := chat(strings.Repeat("It fails. ", 120), "q", false)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	for range 6 {
		r, err := post(t.Context(), s, "/v1/chat/completions", body, "x-replica-status", "503")
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, r); r.StatusCode != 503 {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
	endpointIs(t, s, homes[0], "unhealthy")
	if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homes[1] {
		t.Errorf("served by %s (%v), the second home is %s", got, err, homes[1])
	}
}
