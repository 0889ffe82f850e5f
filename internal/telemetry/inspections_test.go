package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

// Silence on cached tokens counts as none from an endpoint that has told of some, and
// as nothing from one that never did.
func TestInspectedTokens(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 3)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	for _, i := range []struct {
		served string
		extproc.Inspection
	}{
		{"10.0.0.1:80", extproc.Inspection{Result: extproc.InspectionNoCached, PromptTokens: 1000}},
		{"10.0.0.1:80", extproc.Inspection{Result: extproc.InspectionRead, PromptTokens: 100, CachedTokens: 64}},
		{"10.0.0.1:80", extproc.Inspection{Result: extproc.InspectionNoCached, PromptTokens: 60}},
		{"10.0.0.2:80", extproc.Inspection{Result: extproc.InspectionNoCached, PromptTokens: 1000}},
		{"10.0.0.3:80", extproc.Inspection{Result: extproc.InspectionNotSent}},
		{"10.7.7.7:80", extproc.Inspection{Result: extproc.InspectionRead, PromptTokens: 9}}, // no member
	} {
		o.Decided(&extproc.Record{})
		o.Ended(&extproc.Record{Served: i.served, Inspection: &i.Inspection})
	}
	for name, want := range map[string]float64{"warmpath_inspected_prompt_tokens_total": 160, "warmpath_inspected_cached_tokens_total": 64} {
		if s := gather(t, m, name); len(s) != 1 || s[0] != (sample{"10.0.0.1:80", want}) {
			t.Errorf("%s = %v, want %v of 10.0.0.1:80", name, s, want)
		}
	}
	for _, s := range gather(t, m, "warmpath_inspected_responses_total") {
		if want := map[string]float64{"read": 2, "no_cached_tokens": 3, "not_sent": 1}[s.label]; s.value != want {
			t.Errorf("%v of result %s, want %v", s.value, s.label, want)
		}
	}
	if n := len(gather(t, m, "warmpath_inspected_responses_total")); n != len(extproc.InspectionResults()) {
		t.Errorf("%d results have a series", n)
	}
	for range 3 {
		router.SetMembership(newRouter(t, route.PrefixAware, 0).Membership())
	}
	if s := gather(t, m, "warmpath_inspected_prompt_tokens_total"); len(s) != 0 {
		t.Errorf("of an endpoint that left there is %v", s)
	}
	if problems, err := testutil.GatherAndLint(m.Registry(), warmpathNames(t, m)...); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestTimeToFirstToken(t *testing.T) {
	m := NewMetrics(newRouter(t, route.PrefixAware, 1).Loads())
	o := NewObserver(m, nil)
	began := time.Unix(1_700_000_000, 0)
	auto := func(warm int) route.Decision { return route.Decision{Keyed: true, HomeCount: 1, Warm: warm} }
	for _, x := range []struct {
		d  route.Decision
		ms time.Duration
	}{
		{auto(1000), 1},
		{auto(500), 10},
		{auto(499), 100},
		{auto(0), 1000},
		{route.Decision{Keyed: true, Warm: 1000, Strategy: route.KVAware}, 100},
		{route.Decision{Keyed: true}, 10_000},
	} {
		o.Ended(&extproc.Record{Began: began, Decision: x.d, PromptChars: 1000, Inspection: &extproc.Inspection{FirstToken: began.Add(x.ms * time.Millisecond)}})
	}
	o.Ended(&extproc.Record{Began: began, Inspection: new(extproc.Inspection)}) // no text came
	for _, s := range gather(t, m, "warmpath_time_to_first_token_seconds") {
		if want := map[string]float64{"warm": 0.111, "cold": 1.1, "unknown": 10}[s.label]; s.value < want*0.999 || s.value > want*1.001 {
			t.Errorf("%s sums to %v s, want %v", s.label, s.value, want)
		}
	}
}
