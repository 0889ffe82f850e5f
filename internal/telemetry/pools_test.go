package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

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
