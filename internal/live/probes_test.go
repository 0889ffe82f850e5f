package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

// The decision of a probe, and what came of it, outlives any number of other requests'.
func TestProbes(t *testing.T) {
	s := New(start())
	others := func() {
		for range 3 * MaxDecisions {
			r := record(time.Second, decision("10.0.0.9:80", route.Home))
			s.Decided(r)
			s.Served(r)
			s.Ended(r)
		}
	}
	probe := func(i int) *extproc.Record {
		r := record(0, decision("10.0.0.1:80", route.Home))
		r.Probe = fmt.Sprintf("%032x", i)
		return r
	}
	r := probe(1)
	s.Decided(r)
	others()
	if got := s.Probe(r.Probe); len(got) != 1 || got[0].Probe != r.Probe || got[0].Chosen != "10.0.0.1:80" || got[0].Served != "" || got[0].Ended {
		t.Fatalf("decided: %+v", got)
	}
	r.Status, r.Served, r.Attempts = 200, "10.0.0.1:80", 1
	s.Served(r)
	others()
	s.Ended(r)
	if got := s.Probe(r.Probe); len(got) != 1 || got[0].Served != "10.0.0.1:80" || got[0].Status != 200 || !got[0].Ended {
		t.Errorf("served: %+v", got)
	}
	if s.probes.owners[0] != nil {
		t.Error("the record of a request that has ended is kept")
	}
	if got := s.Probe(""); len(got) != 0 {
		t.Errorf("requests without an id are found by none: %+v", got)
	}
	for i := range maxProbes {
		s.Decided(probe(2 + i))
	}
	if got := s.Probe(r.Probe); len(got) != 0 {
		t.Errorf("more than %d are kept: %+v", maxProbes, got)
	}
	if got := s.Probe(fmt.Sprintf("%032x", 2)); len(got) != 1 {
		t.Errorf("the oldest of %d: %+v", maxProbes, got)
	}
}
