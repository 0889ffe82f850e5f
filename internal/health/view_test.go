package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/placement"
)

// describe prints a set as weights with the first letter of the state.
func describe(s fleet.Set) string {
	var words []string
	for _, e := range s.Endpoints() {
		words = append(words, fmt.Sprintf("%d%c", e.Weight, e.State.String()[0]))
	}
	return strings.Join(words, " ")
}

// viewOf reads the letters of a script.
func viewOf(text string) (v View) {
	for mark, phase := range map[string]Panic{"!": Panicking, "?": Settling} {
		if letters, ok := strings.CutSuffix(text, mark); ok {
			text, v.Panic = letters, phase
		}
	}
	for i, word := range strings.Fields(text) {
		e := Endpoint{Address: address(i), Factor: 1}
		e.State = map[byte]State{'s': Starting, 'h': Healthy, 'u': Unhealthy}[word[0]]
		if len(word) > 1 {
			e.Factor = float64(word[1]-'0') / 10
		}
		v.Endpoints = append(v.Endpoints, e)
	}
	return v
}

func TestApply(t *testing.T) {
	const h, u, d = fleet.Healthy, fleet.Unhealthy, fleet.Draining
	for _, tc := range []struct {
		states        []fleet.State
		view          string
		router, envoy string
	}{
		{[]fleet.State{h, h, h}, "h h h", "1h 1h 1h", ""},
		{[]fleet.State{h, h, h}, "h u s", "1h 1u 1u", ""},
		{[]fleet.State{h, u, d}, "h h h", "1h 1u 1d", ""},
		{[]fleet.State{h, u, d}, "u h h", "1h 1u 1d", ""}, // panic
		{[]fleet.State{h, h, h}, "u s u", "1h 1h 1h", ""}, // panic
		{[]fleet.State{h, h, h}, "u s u!", "1h 1h 1h", ""},
		{[]fleet.State{h, u, d}, "u h h!", "1h 1u 1d", ""},
		{[]fleet.State{h, h, h}, "u!", "1h 1h 1h", ""}, // two not known
		{[]fleet.State{h, h, h}, "u h s?", "1h 1h 1u", ""},
		{[]fleet.State{h, h, h}, "u h2?", "100h 20h 100u", "1h 1h 1u"},
		{[]fleet.State{u, h, h}, "u h u?", "1u 1h 1h", ""},
		{[]fleet.State{d, d, d}, "h h h", "1d 1d 1d", ""},
		{[]fleet.State{h, h, h}, "", "1h 1h 1h", ""},    // nothing known
		{[]fleet.State{h, h, h}, "h h", "1h 1h 1u", ""}, // one not known
		{[]fleet.State{h, h}, "h u h", "1h 1u", ""},     // one too many
		{[]fleet.State{h, h, h}, "h1 h h", "10h 100h 100h", "1h 1h 1h"},
		{[]fleet.State{h, h, h}, "h1 u h5", "10h 100u 50h", "1h 1u 1h"},
		{[]fleet.State{h, d, h}, "h h1 h", "1h 1d 1h", ""},
		{nil, "h", "", ""},
	} {
		set := members(len(tc.states), tc.states...)
		router, envoy := Apply(set, viewOf(tc.view))
		if tc.envoy == "" {
			tc.envoy = tc.router
		}
		if describe(router) != tc.router || describe(envoy) != tc.envoy {
			t.Errorf("%v with %q: router %s, envoy %s; want %s, %s", tc.states, tc.view, describe(router), describe(envoy), tc.router, tc.envoy)
		}
	}
}

// A membership is not another because its health was looked at.
func TestApplyKeepsTheVersion(t *testing.T) {
	set := members(3)
	router, envoy := Apply(set, viewOf("h h h"))
	if router.Version() != set.Version() || envoy.Version() != set.Version() {
		t.Error("the version is another")
	}
}

func homes(set fleet.Set, keys int) []string {
	var nodes []placement.Node
	for _, e := range set.Endpoints() {
		if e.State == fleet.Healthy {
			nodes = append(nodes, placement.Node{Address: e.Address, Weight: e.Weight})
		}
	}
	index := placement.New(nodes)
	list := make([]string, keys)
	var top [1]int
	for i := range list {
		index.Top(xxhash.Sum64String(fmt.Sprint("prompt ", i)), top[:])
		list[i] = nodes[top[0]].Address
	}
	return list
}

// In every step of a slow start keys move to the endpoint that rises and
// nowhere else; at its end the homes are those of the membership itself.
func TestSlowStartMovesKeysOnlyToTheNewEndpoint(t *testing.T) {
	const n, keys = 7, 20_000
	m := NewMachine(Defaults())
	m.SetMembers(members(n), at(0))
	set := members(n + 1)
	m.SetMembers(set, at(0))
	newcomer := address(n)
	router, _ := Apply(set, m.View())
	before := homes(router, keys)
	m.Probed(newcomer, at(1), "")
	steps := 0
	for ; ; steps++ {
		router, _ = Apply(set, m.View())
		after := homes(router, keys)
		moved, owned := 0, 0
		for i := range after {
			if after[i] != before[i] {
				moved++
				if after[i] != newcomer {
					t.Fatalf("step %d: a key moved from %s to %s", steps, before[i], after[i])
				}
			}
			if after[i] == newcomer {
				owned++
			}
		}
		e, _ := m.View().Find(newcomer)
		want := keys * e.Factor / (n + e.Factor)
		if got := float64(owned); got < 0.85*want || got > 1.15*want || moved == 0 {
			t.Errorf("step %d: factor %.2f has %d keys, want about %.0f; %d moved", steps, e.Factor, owned, want, moved)
		}
		before = after
		next := m.NextChange()
		if next.IsZero() {
			break
		}
		if !m.Advance(next) {
			t.Fatalf("nothing changed at %v", next.Sub(epoch))
		}
	}
	if steps != slowStartSteps {
		t.Errorf("%d steps, want %d", steps, slowStartSteps)
	}
	plain := homes(set, keys)
	for i := range plain {
		if plain[i] != before[i] {
			t.Fatal("the homes after the slow start are not those without it")
		}
	}
}

func TestBackoff(t *testing.T) {
	o := Defaults()
	o.Probing = false
	for n, want := range map[int]time.Duration{1: 10, 2: 20, 3: 40, 4: 80, 5: 160, 6: 300, 1 << 40: 300} {
		if got := o.backoff(n); got != want*time.Second {
			t.Errorf("backoff(%d) = %v, want %v", n, got, want*time.Second)
		}
	}
	if got := Defaults().backoff(1); got != 0 {
		t.Errorf("first backoff with probes = %v", got)
	}
	if got := Defaults().backoff(2); got != 10*time.Second {
		t.Errorf("second backoff with probes = %v", got)
	}
}
