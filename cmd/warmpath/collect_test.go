package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
)

// The age of a membership is the time since its source was last known to be read and
// taken over; it is 0 in rest, however long nothing changes.
func TestMembershipAge(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	set := func(n int) fleet.Set {
		var list []fleet.Endpoint
		for i := range n {
			list = append(list, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
		}
		s, _ := fleet.NewSet(list)
		return s
	}
	refused := errors.New("refused")
	s := newPoolStatus(config.Membership{File: "endpoints.yaml"}, at(100))
	for i, step := range []struct {
		update         *discovery.Update
		now            int
		age, unchanged int // unchanged is -1 while there is no membership
	}{
		{nil, 107, 7, -1}, // nothing was read yet
		{&discovery.Update{Err: refused, At: at(108)}, 110, 10, -1},
		{&discovery.Update{Set: set(1), At: at(120)}, 1000, 0, 880},
		{&discovery.Update{Set: set(1), Err: refused, At: at(1000)}, 1003, 3, 883},
		{&discovery.Update{Set: set(1), Err: refused, At: at(1010)}, 1020, 20, 900}, // told again
		{&discovery.Update{Set: set(1), At: at(1030)}, 1040, 0, 920},                // the same again
		{&discovery.Update{Set: set(2), At: at(1050)}, 1060, 0, 10},
		{nil, 900, 0, 0}, // a clock that was set back
	} {
		if step.update != nil {
			s.sourced(*step.update)
		}
		m := s.membership(at(step.now))
		if m.Age != time.Duration(step.age)*time.Second || m.Known != (step.unchanged >= 0) ||
			m.Unchanged != time.Duration(max(step.unchanged, 0))*time.Second || m.Source != "file" {
			t.Errorf("step %d: %+v, want an age of %d s, unchanged for %d s, file", i, m, step.age, step.unchanged)
		}
	}
	if m := s.membership(at(0)); m.Version != set(2).Version() {
		t.Errorf("version %x, want %x", m.Version, set(2).Version())
	}
}

// The sources have the names of the configuration's keys.
func TestMembershipKinds(t *testing.T) {
	for want, m := range map[string]config.Membership{
		"static": {}, "file": {File: "a"}, "dns": {DNS: new(config.DNS)}, "api": {API: new(config.API)},
		"kubernetes": {Kubernetes: config.Kubernetes{Service: "a"}},
	} {
		if got := m.Kind(); got != want {
			t.Errorf("%+v is %s, want %s", m, got, want)
		}
	}
}

// Hot prefixes have other names in metrics than on the page, and in another process.
func TestHotPrefixesAreSalted(t *testing.T) {
	names := make(map[string]bool)
	for range 2 {
		p := startWith(t, t.TempDir(), shownConfig)
		p.settled(t)
		for i := range 100 {
			p.decide(i)
		}
		found := p.hot(p.pools[0])
		if len(found) == 0 || found[0].Share < 0.9 || found[0].Homes < 1 {
			t.Fatalf("hot are %+v", found)
		}
		state, _ := p.live.Fleet(p.livePools(), time.Now())
		if shown := state[0].Hot[0]; shown.Share != found[0].Share || shown.Key == found[0].Hash || len(found[0].Hash) != 16 {
			t.Errorf("the page shows %+v, metrics %+v", shown, found[0])
		}
		names[found[0].Hash] = true
	}
	if len(names) != 2 {
		t.Errorf("two processes name a prefix alike: %v", names)
	}
}
