package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// All model servers are replaced one by one while requests run, as docs/OPERATIONS.md
// says: by others at new addresses, and at their own.
func TestReplicasReplacedOneByOne(t *testing.T) {
	config := prefixAware(0)
	config.Extra = quickHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 6, Config: config})
	before := goroutines(t, s)
	all := stack.Endpoints(s.Replicas.Addresses()...)
	becomes(t, s, all[:3])
	l := startSteadyLoad(t, s)

	// At new addresses: the next one comes before the last one goes.
	serving := slices.Clone(all[:3])
	for i, next := range all[3:] {
		l.underway(t)
		becomes(t, s, append(serving, next))
		l.more(t, 10)
		serving = append(slices.Delete(serving, 0, 1), next)
		becomes(t, s, serving)
		if err := s.Replicas.Stop(all[i].Address); err != nil {
			t.Fatal(err)
		}
		l.more(t, 10)
	}
	for _, e := range all[:3] {
		if n := s.Replicas.Replica(e.Address).Stats().Outstanding; n != 0 {
			t.Errorf("%s had %d requests when it was stopped", e.Address, n)
		}
	}

	// At their own addresses: drained, stopped, started, put back.
	for i := range serving {
		l.underway(t)
		draining := slices.Clone(serving)
		draining[i].State = fleet.Draining
		becomes(t, s, draining)
		idle(t, s, serving[i].Address)
		if err := s.Replicas.Restart(serving[i].Address); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, serving)
		l.more(t, 10)
	}
	l.settled(t, before, nil)
}

// becomes replaces the membership, and waits until warmpath and Envoy have it, all
// who are to serve are healthy, and all who have left are gone.
func becomes(t *testing.T, s *stack.Stack, endpoints []fleet.Endpoint) {
	t.Helper()
	if err := s.WriteEndpoints(endpoints); err != nil {
		t.Fatal(err)
	}
	taken(t, s, endpoints)
	envoyHas(t, s, len(endpoints))
}

// taken waits until warmpath routes by a membership.
func taken(t *testing.T, s *stack.Stack, endpoints []fleet.Endpoint) {
	t.Helper()
	want := make(map[string]string)
	for _, e := range endpoints {
		want[e.Address] = e.State.String()
	}
	if err := s.Await(t.Context(), "the membership", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		if len(status.Endpoints) != len(want) || len(status.Membership.Leaving) > 0 {
			return fmt.Errorf("endpoints %+v, leaving %v", status.Endpoints, status.Membership.Leaving)
		}
		for _, e := range status.Endpoints {
			if e.State != want[e.Address] || e.Health != "healthy" {
				return fmt.Errorf("endpoint %+v, want %q", e, want[e.Address])
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// idle waits until warmpath counts nothing at an endpoint.
func idle(t *testing.T, s *stack.Stack, address string) {
	t.Helper()
	if err := s.Await(t.Context(), "the drain", func() error {
		status, err := s.Status(t.Context())
		if n := status.Outstanding()[address]; err == nil && n > 0 {
			err = fmt.Errorf("%d requests at %s", n, address)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
