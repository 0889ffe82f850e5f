package route

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Find is what a look at every rule finds.
func TestModelRulesAgainstALook(t *testing.T) {
	name := rapid.StringMatching(`[ab]{0,5}`)
	rapid.Check(t, func(rt *rapid.T) {
		var rules ModelRules[string]
		listed := make(map[string]bool)
		for _, rule := range rapid.SliceOf(rapid.StringMatching(`[ab]{0,5}\*?`)).Draw(rt, "rules") {
			if other, taken := rules.Add(rule, rule); taken != listed[rule] || taken && other != rule {
				rt.Fatalf("%q is taken: %v, by %q", rule, taken, other)
			}
			listed[rule] = true
		}
		model, want := name.Draw(rt, "model"), ""
		for rule := range listed {
			start, many := strings.CutSuffix(rule, "*")
			if many && strings.HasPrefix(model, start) && len(rule) > len(want) {
				want = rule
			}
		}
		if listed[model] {
			want = model
		}
		if got, ok := rules.Find(model); got != want || ok != (want != "" || listed[""] && model == "") {
			rt.Errorf("%q has %q (%v), want %q of %v", model, got, ok, want, listed)
		}
		if rules.Len() != len(listed) {
			rt.Errorf("%d rules, want %d", rules.Len(), len(listed))
		}
	})
}
