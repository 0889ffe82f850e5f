package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// A signal ends warmpath with code 0 within seconds although responses run. They
// run on to their end, and new requests are served meanwhile, by Envoy's choice.
func TestShutdownWithOpenStreams(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	body := chat(strings.Repeat("A stream across the end. ", 60), "q", true)
	open, _ := holdOpen(t, s, body, 3)
	begin := time.Now()
	if err := s.Warmpath.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for i := 0; !s.Warmpath.Ended(); i++ {
		if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
			t.Errorf("request %d during the end: %v", i, err)
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal("warmpath did not end within 10 s")
		}
	}
	if err := s.Warmpath.Stop(time.Second); err != nil {
		t.Errorf("warmpath ended with %v", err)
	}
	if out := s.Warmpath.Output(); !strings.Contains(out, "warmpath ends") {
		t.Errorf("it did not say that it ends:\n%s", out)
	}
	s.Replicas.Release()
	for _, r := range open.responses {
		if text := readAll(t, r); !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("a stream was cut: it ends %q", text[max(0, len(text)-60):])
		}
	}
}

// warmpath says that it serves when it has a membership, and no longer once it is
// to end.
func TestHealthTellsTheTruth(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2})
	is := func(want bool) {
		t.Helper()
		if got, err := s.Serving(t.Context()); got != want || err != nil {
			t.Errorf("serving: %v (%v), want %v", got, err, want)
		}
	}
	is(true)
	if err := s.Warmpath.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRawEndpoints("endpoints: ["); err != nil {
		t.Fatal(err)
	}
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(false)
	if err := s.WriteEndpoints(stack.Endpoints(s.Replicas.Addresses()...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "warmpath to serve", func() error {
		if got, err := s.Serving(t.Context()); !got || err != nil {
			return fmt.Errorf("serving: %v (%v)", got, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Warmpath.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	refused := false
	for !s.Warmpath.Ended() { // it answers for some time yet, and then no longer
		if serving, err := s.Serving(t.Context()); err == nil && !serving {
			refused = true
		}
		last(10 * time.Millisecond)
	}
	if !refused {
		t.Error("it ended and never said that it does not serve")
	}
}

// A signal in the first moments is a clean end too.
func TestSignalAtTheStart(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2})
	for i := range 8 {
		if err := s.Warmpath.Stop(10 * time.Second); err != nil {
			t.Fatalf("round %d: %v\n%s", i, err, s.Warmpath.Output())
		}
		if err := s.StartWarmpath(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// warmpath is down while the membership grows. The new process sends nobody to
// an endpoint that the Envoy which still runs does not know yet.
func TestRestartWithAnotherMembership(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	all := stack.Endpoints(s.Replicas.Addresses()...)
	tr := startTraffic(t, s, 3)
	for round := range 4 {
		for _, n := range []int{3, 7} {
			s.Warmpath.Kill()
			if err := s.WriteEndpoints(all[:n]); err != nil {
				t.Fatal(err)
			}
			if err := s.StartWarmpath(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.AwaitRouting(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Await(t.Context(), "Envoy to follow", func() error { return s.EnvoyKnows(t.Context(), n) }); err != nil {
				t.Fatal(err)
			}
			tr.more(t, s, 30)
			noMisses(t, s)
			if t.Failed() {
				t.Fatalf("in round %d, with %d endpoints", round, n)
			}
		}
	}
	tr.end()
	atRest(t, s)
}

// What is live in the file besides the strategy takes effect while serving.
func TestReloadOfTenantAndRetry(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	body := chat(strings.Repeat("Shared by the teams. ", 80), "q", false)
	homesOfTeams := func() int {
		homes := make(map[string]bool)
		for team := range 12 {
			got, err := served(t.Context(), s, "/v1/chat/completions", body, "x-team", fmt.Sprintf("team-%d", team))
			if err != nil {
				t.Fatal(err)
			}
			homes[got] = true
		}
		return len(homes)
	}
	if n := homesOfTeams(); n != 1 {
		t.Errorf("a header that is not the tenant's gave %d homes", n)
	}
	config := prefixAware(0)
	config.Extra = "tenant: {header: X-Team}"
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if n := homesOfTeams(); n < 3 {
		t.Errorf("12 tenants have %d homes", n)
	}
	config.Extra = "retry: {attempts: 0}"
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := s.Replicas.Stop(homesOf(t, s, "/v1/chat/completions", body)[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := served(t.Context(), s, "/v1/chat/completions", body); err == nil {
		t.Errorf("without retries a request for a dead home was served by %s", got)
	}
}
