package telemetry

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/internal/route"
)

// What engines tell stands there until they tell no more, or leave.
func TestEngines(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	m.SetEngine("10.0.0.1:80", Engine{Queries: 100, Hits: 64, HitRate: math.NaN(), Usage: 0.5})
	m.SetEngine("10.0.0.2:80", Engine{Queries: math.NaN(), Hits: math.NaN(), HitRate: 0.25, Usage: math.NaN()})
	m.SetEngine("10.7.7.7:80", Engine{Queries: 1}) // no member
	m.ForgetEngine("10.8.8.8:80")
	expect := func(name string, want ...sample) {
		t.Helper()
		got := gather(t, m, name)
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	expect("warmpath_engine_prefix_cache_queries_total", sample{"10.0.0.1:80", 100})
	expect("warmpath_engine_prefix_cache_hits_total", sample{"10.0.0.1:80", 64})
	expect("warmpath_engine_cache_hit_ratio", sample{"10.0.0.2:80", 0.25})
	expect("warmpath_engine_kv_cache_usage_ratio", sample{"10.0.0.1:80", 0.5})
	if problems, err := testutil.GatherAndLint(m.Registry(), warmpathNames(t, m)...); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	m.ForgetEngine("10.0.0.1:80")
	expect("warmpath_engine_prefix_cache_queries_total")
	for range 3 {
		router.SetMembership(newRouter(t, route.PrefixAware, 0).Membership())
	}
	expect("warmpath_engine_cache_hit_ratio")
}
