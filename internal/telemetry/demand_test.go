package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

// A pool's demand is that of its router at the time of the scrape.
func TestDemandAtScrape(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 3)
	router.SetPolicy(route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 64})
	m := NewMetrics(router.Loads())
	m.CollectDemand("", router.Demand)
	m.CollectDemand("chat", func() route.Demand { return route.Demand{Outstanding: 3, Bound: 4, Wanted: 1.25} })
	for range 48 {
		router.Table().Pick(route.Request{Key: 1, Keyed: true})
	}
	const want = `
# HELP warmpath_pool_bound_requests Requests that may run at the pool's endpoints, each at its bound of now.
# TYPE warmpath_pool_bound_requests gauge
warmpath_pool_bound_requests{pool="chat"} 4
warmpath_pool_bound_requests{pool="default"} 192
# HELP warmpath_pool_outstanding_requests Requests that run at the pool's endpoints now.
# TYPE warmpath_pool_outstanding_requests gauge
warmpath_pool_outstanding_requests{pool="chat"} 3
warmpath_pool_outstanding_requests{pool="default"} 48
# HELP warmpath_pool_wanted_endpoints Endpoints that the pool should have for the requests that run, as a fraction.
# TYPE warmpath_pool_wanted_endpoints gauge
warmpath_pool_wanted_endpoints{pool="chat"} 1.25
warmpath_pool_wanted_endpoints{pool="default"} 1.5
`
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want),
		"warmpath_pool_outstanding_requests", "warmpath_pool_bound_requests", "warmpath_pool_wanted_endpoints"); err != nil {
		t.Error(err)
	}
}

// A pool's decisions are counted apart.
func TestDecisionsByPool(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	m.OfPool("chat")
	o := NewObserver(m, nil)
	r, _ := record(t, router, 42)
	o.Decided(r)
	r.Pool = "chat"
	o.Decided(r)
	o.Decided(r)
	for pool, want := range map[string]float64{DefaultPool: 1, "chat": 2} {
		if n := testutil.ToFloat64(m.requested[pool].decisions[route.PrefixAware][route.Home]); n != want {
			t.Errorf("pool %s: %v decisions, want %v", pool, n, want)
		}
	}
}

// Names of no pool are counted by what they were to name, whatever they are.
func TestUnknownNames(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	for i := range 7 {
		r, _ := record(t, router, 42)
		r.Unknown = extproc.Unknown{Pool: i < 1, Component: i < 2, Model: i < 4}
		r.Model = fmt.Sprint("made-up-", i)
		o.Decided(r)
	}
	want := `
# HELP warmpath_unknown_names_total Requests with a name for their pool that no pool has, by what named it.
# TYPE warmpath_unknown_names_total counter
warmpath_unknown_names_total{kind="component"} 2
warmpath_unknown_names_total{kind="model"} 4
warmpath_unknown_names_total{kind="pool"} 1
`
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want), "warmpath_unknown_names_total"); err != nil {
		t.Error(err)
	}
}
