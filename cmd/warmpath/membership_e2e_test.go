package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// traffic sends requests of many prefixes until it is stopped.
type traffic struct {
	stop   chan struct{}
	wg     sync.WaitGroup
	sent   atomic.Int64
	failed atomic.Int64
}

func startTraffic(t *testing.T, s *stack.Stack, clients int) *traffic {
	tr := &traffic{stop: make(chan struct{})}
	for c := range clients {
		tr.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-tr.stop:
					return
				default:
				}
				body := chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", (i*7+c)%40), 120), "q", i%2 == 0)
				if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
					tr.failed.Add(1)
					t.Errorf("request failed: %v", err)
				}
				tr.sent.Add(1)
			}
		})
	}
	t.Cleanup(tr.end)
	return tr
}

func (tr *traffic) end() {
	select {
	case <-tr.stop:
	default:
		close(tr.stop)
	}
	tr.wg.Wait()
}

// more waits until n further requests have been answered.
func (tr *traffic) more(t *testing.T, s *stack.Stack, n int64) {
	t.Helper()
	target := tr.sent.Load() + n
	if err := s.Await(t.Context(), fmt.Sprintf("%d more requests", n), func() error {
		if now := tr.sent.Load(); now < target {
			return fmt.Errorf("%d to go", target-now)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// spares fails if an endpoint gets requests that are decided from now on; why says what
// it is that should get none.
func (tr *traffic) spares(t *testing.T, s *stack.Stack, address, why string) {
	t.Helper()
	tr.more(t, s, 20) // what had been decided before has been sent
	before := s.Replicas.Replica(address).Stats().Started
	tr.more(t, s, 150)
	if after := s.Replicas.Replica(address).Stats().Started; after != before {
		t.Errorf("an endpoint that %s got %d new requests", why, after-before)
	}
}

// Endpoints come and go through the file while requests run: none is lost, none
// goes elsewhere than decided.
func TestMembershipChangesLoseNothing(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	all := stack.Endpoints(s.Replicas.Addresses()...)
	tr := startTraffic(t, s, 4)
	change := func(endpoints []fleet.Endpoint, envoyHas int) {
		t.Helper()
		if err := s.WriteEndpoints(endpoints); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(t.Context(), "Envoy to follow", func() error { return s.EnvoyKnows(t.Context(), envoyHas) }); err != nil {
			t.Fatal(err)
		}
		tr.more(t, s, 100)
	}
	for _, n := range []int{7, 3, 6, 1, 7, 2, 7} {
		change(all[:n], n)
	}
	drained := append([]fleet.Endpoint(nil), all...)
	drained[2].State = fleet.Draining
	change(drained, 7)
	if err := s.Await(t.Context(), "the drain", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		for _, e := range status.Endpoints {
			if e.Address == all[2].Address && e.State == "draining" && e.Outstanding == 0 {
				return nil
			}
		}
		return fmt.Errorf("endpoints %+v", status.Endpoints)
	}); err != nil {
		t.Fatal(err)
	}
	before := s.Replicas.Replica(all[2].Address).Stats().Started
	tr.more(t, s, 200)
	if after := s.Replicas.Replica(all[2].Address).Stats().Started; after != before {
		t.Errorf("a draining endpoint got %d new requests", after-before)
	}
	tr.end()
	if tr.sent.Load() < 1000 {
		t.Errorf("only %d requests were sent", tr.sent.Load())
	}
	noMisses(t, s)
	atRest(t, s)
}

// A bad file changes nothing but what is said of it; a good one after it does.
func TestBadMembershipKeepsTheLastGood(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	addresses := s.Replicas.Addresses()
	tr := startTraffic(t, s, 2)
	for name, tc := range map[string]struct{ text, want string }{
		"not YAML":    {"endpoints: [", "not YAML"},
		"unknown key": {"endpoint: []\n", "endpoint"},
		"empty file":  {"", "endpoints"},
		"all bad":     {"endpoints: [{address: gpu-1.example:8000}]\n", "gpu-1.example:8000"},
	} {
		if err := s.WriteRawEndpoints(tc.text); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(t.Context(), name+" to be refused", func() error {
			status, err := s.Status(t.Context())
			if err != nil {
				return err
			}
			if said := status.Membership.Error + strings.Join(status.Membership.Problems, " "); !strings.Contains(said, tc.want) {
				return fmt.Errorf("status says %q", said)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		tr.more(t, s, 50)
		if err := s.EnvoyKnows(t.Context(), 3); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	// One bad entry does not hold up the others.
	text := fmt.Sprintf("endpoints:\n- {address: %q}\n- {address: gpu-1.example:8000}\n- {address: %q}\n", addresses[0], addresses[1])
	if err := s.WriteRawEndpoints(text); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the good entries", func() error { return s.EnvoyKnows(t.Context(), 2) }); err != nil {
		t.Error(err)
	}
	tr.end()
	noMisses(t, s)
}

// A streaming response on an endpoint that is removed runs to its end, counted
// until then; only then does Envoy forget the endpoint.
func TestRemovedEndpointFinishesItsStreams(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	body := chat(strings.Repeat("Stream on a leaving endpoint. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	open, counts := holdOpen(t, s, body, 2)
	if counts[home] != 2 {
		t.Fatalf("streams at %v, home is %s", counts, home)
	}
	var rest []fleet.Endpoint
	for _, e := range stack.Endpoints(s.Replicas.Addresses()...) {
		if e.Address != home {
			rest = append(rest, e)
		}
	}
	if err := s.WriteEndpoints(rest); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the endpoint to drain", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		if len(status.Membership.Leaving) != 1 || status.Outstanding()[home] != 2 {
			return fmt.Errorf("leaving %v, outstanding %v", status.Membership.Leaving, status.Outstanding())
		}
		return s.EnvoyKnows(t.Context(), 3)
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got == home {
		t.Errorf("a new request of its prefix went to %s (%v)", got, err)
	}
	s.Replicas.Release()
	for _, r := range open.responses {
		if text := readAll(t, r); !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("a stream was cut: it ends %q", text[max(0, len(text)-60):])
		}
	}
	if err := s.Await(t.Context(), "Envoy to forget it", func() error { return s.EnvoyKnows(t.Context(), 2) }); err != nil {
		t.Error(err)
	}
	atRest(t, s)
}

// With no endpoint at all Envoy answers 503 at once; the first request after an
// endpoint appears is served.
func TestEmptyMembership(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: prefixAware(0)})
	body := chat("short", "q", false)
	if err := s.WriteEndpoints(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "an empty pool", func() error { return s.EnvoyKnows(t.Context(), 0) }); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r, err := post(t.Context(), s, "/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, r); r.StatusCode != 503 {
			t.Errorf("status %d with no endpoint, want 503", r.StatusCode)
		}
	}
	if err := s.WriteEndpoints(stack.Endpoints(s.Replicas.Addresses()[0])); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the endpoint", func() error { return s.EnvoyKnows(t.Context(), 1) }); err != nil {
		t.Fatal(err)
	}
	if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
		t.Error(err)
	}
	atRest(t, s)
}
