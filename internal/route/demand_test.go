package route

import (
	"fmt"
	"math"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
)

// At the mean load that an endpoint is to have, its bound is twice that.
func TestDemandIsAShareOfTheBound(t *testing.T) {
	if autoBound(autoDemand) != autoDemand/demandShare || looseBound(looseDemand) != looseDemand/demandShare {
		t.Errorf("bounds of %d and %d at %d and %d", autoBound(autoDemand), looseBound(looseDemand), autoDemand, looseDemand)
	}
}

// Three standard deviations fit below a fixed threshold, and not much more.
func TestFixedDemand(t *testing.T) {
	for threshold := 1; threshold <= MaxConcurrencyThreshold; threshold++ {
		m, bound := fixedDemand(threshold), float64(threshold)
		if m <= 0 || m > bound/2 || m+3*math.Sqrt(m) > bound+1e-9 || m < bound/2 && m+3*math.Sqrt(m) < bound-1e-9 {
			t.Errorf("threshold %d: %g", threshold, m)
		}
	}
}

func TestDemand(t *testing.T) {
	for _, c := range []struct {
		name     string
		policy   Policy
		requests int
		bound    int64
		wanted   float64
	}{
		{"idle", Policy{Strategy: PrefixAware, PrefixLength: 4096, ConcurrencyThreshold: 8}, 0, 32, 0},
		{"fixed threshold", Policy{Strategy: PrefixAware, PrefixLength: 4096, ConcurrencyThreshold: 64}, 48, 256, 1.5},
		{"beyond what there is", Policy{Strategy: PrefixAware, PrefixLength: 4096, ConcurrencyThreshold: 4}, 20, 16, 20},
		{"fixed length, automatic threshold", Policy{Strategy: PrefixAware, PrefixLength: 4096}, 39, 80, 3.9},
		{"all automatic", Policy{Strategy: PrefixAware, PrefixLength: AutoPrefixLength}, 127, 4 * 64, 127. / 32},
		{"KV_AWARE", Policy{Strategy: KVAware, ConcurrencyThreshold: 40}, 20, 160, 1},
		{"a strategy without a bound", Policy{Strategy: Random, ConcurrencyThreshold: 3}, 64, 4 * 49, 2},
	} {
		var endpoints []fleet.Endpoint
		for i := range 4 {
			endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
		}
		// It gets nothing, but what it has counts.
		endpoints = append(endpoints, fleet.Endpoint{Address: "10.0.0.9:80", Weight: 1, State: fleet.Draining})
		set, _ := fleet.NewSet(endpoints)
		router := NewRouter(c.policy)
		router.SetMembership(set)
		for i := range c.requests {
			if i == 0 {
				router.Loads().Counter("10.0.0.9:80").Take()
				continue
			}
			router.Loads().Counter(fmt.Sprintf("10.0.0.%d:80", i%4+1)).Take()
		}
		d := router.Demand()
		if d.Outstanding != int64(c.requests) || math.Abs(float64(d.Bound-c.bound)) > 4 || math.Abs(d.Wanted-c.wanted) > 1e-9 {
			t.Errorf("%s: %+v, want %d outstanding, bounds of %d, %g endpoints", c.name, d, c.requests, c.bound, c.wanted)
		}
	}
	// Without any endpoint there is no bound, and no division by nothing.
	if d := NewRouter(Policy{Strategy: PrefixAware}).Demand(); d != (Demand{}) {
		t.Errorf("an empty pool: %+v", d)
	}
}
