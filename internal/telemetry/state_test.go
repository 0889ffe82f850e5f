package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/internal/route"
)

// stateOf asks a router, with nothing hot and a membership from a file.
func stateOf(router *route.Router) PoolState {
	return PoolState{
		Demand: router.Demand, Bounds: router.Bounds, Weights: router.Weights, MemoryBytes: router.MemoryBytes,
		Hot:        func() []HotPrefix { return nil },
		Membership: func() Membership { return Membership{Source: "file"} },
	}
}

// A pool's state is that of its router and its membership at the time of the scrape.
func TestStateAtScrape(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	router.SetPolicy(route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 64})
	m := NewMetrics(router.Loads())
	m.Collect("", stateOf(router))
	chat := stateOf(newRouter(t, route.Random, 0))
	chat.Demand = func() route.Demand { return route.Demand{Outstanding: 3, Bound: 4, Wanted: 1.25} }
	chat.Bounds = func(f func(string, int64, int64)) { f("10.0.0.9:80", 1, 7) }
	chat.Weights = func(f func(string, float64)) { f("10.0.0.9:80", 0.5) }
	chat.MemoryBytes = func() int { return 2 << 20 }
	chat.Hot = func() []HotPrefix { return []HotPrefix{{"aa", 0.75, 2}, {"bb", 0.05, 1}, {"cc", 0.049, 1}} }
	chat.Membership = func() Membership {
		return Membership{Source: "dns", Version: 0xfffffffffffff123, Age: 90 * time.Second, Unchanged: time.Hour, Known: true}
	}
	m.Collect("chat", chat)
	for range 48 {
		router.Table().Pick(route.Request{Key: 1, Keyed: true})
	}
	const want = `
# HELP warmpath_bound_requests Requests that may run at an endpoint now.
# TYPE warmpath_bound_requests gauge
warmpath_bound_requests{endpoint="10.0.0.1:80",pool="default"} 64
warmpath_bound_requests{endpoint="10.0.0.2:80",pool="default"} 64
warmpath_bound_requests{endpoint="10.0.0.9:80",pool="chat"} 7
# HELP warmpath_endpoint_weight Weight of an endpoint that may be chosen.
# TYPE warmpath_endpoint_weight gauge
warmpath_endpoint_weight{endpoint="10.0.0.1:80",pool="default"} 1
warmpath_endpoint_weight{endpoint="10.0.0.2:80",pool="default"} 1
warmpath_endpoint_weight{endpoint="10.0.0.9:80",pool="chat"} 0.5
# HELP warmpath_hot_prefix_homes Endpoints over which the requests with a prefix are spread, of the hottest.
# TYPE warmpath_hot_prefix_homes gauge
warmpath_hot_prefix_homes{pool="chat",prefix="aa"} 2
warmpath_hot_prefix_homes{pool="chat",prefix="bb"} 1
# HELP warmpath_hot_prefix_ratio Share of the recent requests that begin with a prefix, of the hottest.
# TYPE warmpath_hot_prefix_ratio gauge
warmpath_hot_prefix_ratio{pool="chat",prefix="aa"} 0.75
warmpath_hot_prefix_ratio{pool="chat",prefix="bb"} 0.05
# HELP warmpath_membership_age_seconds How long ago the source of the membership has confirmed it.
# TYPE warmpath_membership_age_seconds gauge
warmpath_membership_age_seconds{pool="chat",source="dns"} 90
warmpath_membership_age_seconds{pool="default",source="file"} 0
# HELP warmpath_membership_unchanged_seconds How long ago the membership last became another.
# TYPE warmpath_membership_unchanged_seconds gauge
warmpath_membership_unchanged_seconds{pool="chat"} 3600
# HELP warmpath_membership_version The first 52 bits of the membership's version, a hash of it.
# TYPE warmpath_membership_version gauge
warmpath_membership_version{pool="chat"} 4.503599627370495e+15
# HELP warmpath_pool_bound_requests Requests that may run at the pool's endpoints, each at its bound of now.
# TYPE warmpath_pool_bound_requests gauge
warmpath_pool_bound_requests{pool="chat"} 4
warmpath_pool_bound_requests{pool="default"} 128
# HELP warmpath_pool_outstanding_requests Requests that run at the pool's endpoints now.
# TYPE warmpath_pool_outstanding_requests gauge
warmpath_pool_outstanding_requests{pool="chat"} 3
warmpath_pool_outstanding_requests{pool="default"} 48
# HELP warmpath_pool_wanted_endpoints Endpoints that the pool should have for the requests that run, as a fraction.
# TYPE warmpath_pool_wanted_endpoints gauge
warmpath_pool_wanted_endpoints{pool="chat"} 1.25
warmpath_pool_wanted_endpoints{pool="default"} 1.5
# HELP warmpath_prefix_memory_bytes Size of the memory of what was served where.
# TYPE warmpath_prefix_memory_bytes gauge
warmpath_prefix_memory_bytes{pool="chat"} 2.097152e+06
warmpath_prefix_memory_bytes{pool="default"} 0
`
	names := make(map[string]bool)
	for line := range strings.Lines(want) {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			names[strings.Fields(name)[0]] = true
		}
	}
	var listed []string
	for name := range names {
		listed = append(listed, name)
	}
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want), listed...); err != nil {
		t.Error(err)
	}
}

// Only the hottest prefixes have series, and those that have cooled have none any more.
func TestHotPrefixesAreBounded(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	state := stateOf(router)
	var hot []HotPrefix
	state.Hot = func() []HotPrefix { return hot }
	m.Collect("", state)
	for round := range 3 {
		hot = nil
		for i := range 30 {
			hot = append(hot, HotPrefix{Hash: fmt.Sprintf("%d-%02d", round, i), Share: 0.9 - float64(i)/100, Homes: 1})
		}
		var labels []string
		families, err := m.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "warmpath_hot_prefix_ratio" || f.GetName() == "warmpath_hot_prefix_homes" {
				for _, s := range f.GetMetric() {
					labels = append(labels, s.GetLabel()[1].GetValue())
				}
			}
		}
		slices.Sort(labels)
		labels = slices.Compact(labels)
		if len(labels) != MaxHotPrefixes || labels[0] != fmt.Sprintf("%d-00", round) || labels[9] != fmt.Sprintf("%d-09", round) {
			t.Errorf("round %d: series of %v", round, labels)
		}
	}
	hot = nil
	if s := gather(t, m, "warmpath_hot_prefix_ratio"); len(s) != 0 {
		t.Errorf("nothing is hot, and there is %v", s)
	}
}
