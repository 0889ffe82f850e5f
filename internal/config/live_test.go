package config

import (
	"slices"
	"testing"
)

// Which models and components belong to pools is live, as a whole, unless a pool comes
// or goes: then a model that moves to a new pool stays where it is until the restart.
func TestModelsOfPoolsAreLive(t *testing.T) {
	pools := func(list ...NamedPool) Config {
		c := Default()
		for _, p := range list {
			p.Pool = defaultPool()
			p.Cluster.Name = ClusterPrefix + p.Name
			c.Pools = append(c.Pools, p)
		}
		return c
	}
	a := NamedPool{Name: "a", Models: []string{"m", "n"}, Components: []string{"c"}}
	b := NamedPool{Name: "b", Models: []string{"o"}}
	for name, tc := range map[string]struct {
		next           Config
		models         []string // of pool a
		components     []string
		waitForRestart bool
	}{
		"a model moves": {
			pools(NamedPool{Name: "a", Models: []string{"m"}}, NamedPool{Name: "b", Models: []string{"n", "o"}}), []string{"m"}, nil, false,
		},
		"a model moves to a new pool": {
			pools(NamedPool{Name: "a", Models: []string{"m"}}, b, NamedPool{Name: "new", Models: []string{"n"}}), a.Models, a.Components, true,
		},
		"a pool goes": {pools(NamedPool{Name: "a", Models: []string{"o"}}), a.Models, a.Components, true},
	} {
		effective, restart := pools(a, b).Reload(tc.next)
		got := effective.Pools[0]
		if !slices.Equal(got.Models, tc.models) || !slices.Equal(got.Components, tc.components) {
			t.Errorf("%s: models %q, components %q", name, got.Models, got.Components)
		}
		if waits := slices.Contains(restart, "pools"); waits != tc.waitForRestart {
			t.Errorf("%s: %q wait for the restart", name, restart)
		}
	}
}
