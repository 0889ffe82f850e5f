package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// Pool is a set of endpoints that serve the same models, and how requests are
// routed to them.
type Pool struct {
	RoutingConfig RoutingConfig `yaml:"routingConfig"`
	// Shadow is a policy that decides without effect, Split one that decides for a
	// share of the conversations.
	Shadow     Trial      `yaml:"shadow,flow"`
	Split      Trial      `yaml:"split,flow"`
	Membership Membership `yaml:"membership"`
	Health     Health     `yaml:"health"`
	Cluster    Cluster    `yaml:"cluster"`
	Adapters   Adapters   `yaml:"adapters"`
}

// Adapters says how requests for LoRA adapters are routed.
type Adapters struct {
	// Sticky is how many endpoints serve an adapter, 0 to 1000; 0 takes no notice of
	// adapters.
	Sticky int `yaml:"sticky"`
	// Models are those that are adapters whatever the endpoints say; one may end in *.
	Models []string `yaml:"models,flow"`
	// Refresh is how often each endpoint is asked for its adapters; 0 for never.
	Refresh time.Duration `yaml:"refresh"`
}

func (a *Adapters) decode(v strict.Value) {
	isMapping := v.Fields(
		strict.Field{Name: "sticky", Decode: strict.Int(&a.Sticky, 0, 1000)},
		strict.Field{Name: "models", Decode: func(v strict.Value) { decodeNames(v, &a.Models, "model", claims{}) }},
		strict.Field{Name: "refresh", Decode: strict.Duration(&a.Refresh, 0, time.Hour)},
	)
	switch {
	case !isMapping:
	case a.Refresh > 0 && a.Refresh < time.Second:
		v.Report("refresh", "%v is below the minimum 1s (want 0s for never, or 1s..1h)", a.Refresh)
	case a.Sticky == 0 && (len(a.Models) > 0 || a.Refresh > 0):
		v.Report("sticky", "is 0, which takes no notice of adapters (want 1..1000 with models or refresh)")
	}
}

// NamedPool is a pool that requests have to name.
type NamedPool struct {
	Name string `yaml:"name"`
	// Models are the names in a request's body or path that belong to the pool; one
	// may end in *, for all that begin like it.
	Models []string `yaml:"models,flow,omitempty"`
	// Components are the values of Component.Header that do, beside Name.
	Components []string `yaml:"components,flow,omitempty"`
	Pool       `yaml:",inline"`
}

// Component says how the inference component of a request is known.
type Component struct {
	// Header is the lower-case name of the request header with the component.
	Header string `yaml:"header"`
}

func defaultPool() Pool {
	random := RoutingConfig{
		RoutingStrategy: Random,
		PrefixAware:     PrefixAwareRoutingConfig{PrefixLength: route.DefaultPrefixLength, ConcurrencyThreshold: AutoThreshold},
	}
	return Pool{
		RoutingConfig: random, Shadow: defaultTrial(random), Split: defaultTrial(random),
		Membership: Membership{DrainTimeout: 5 * time.Minute},
		Health: Health{
			Path: "/health", Interval: time.Second, Timeout: time.Second,
			FailedProbes: 3, GoodProbes: 2, FailedRequests: 5, SlowStart: 30 * time.Second,
		},
		Cluster:  Cluster{Name: "warmpath_pool", ConnectTimeout: time.Second},
		Adapters: Adapters{Models: []string{}},
	}
}

const (
	maxPools = 100
	// maxModels bounds the models and components of a pool.
	maxModels = 1000
	// ClusterPrefix and a pool's name make the name of its cluster.
	ClusterPrefix = "warmpath_"
)

var poolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,49}$`)

// fields are those that the default pool and a named one have in common.
func (p *Pool) fields(hasMembership *bool) []strict.Field {
	return []strict.Field{
		{Name: "routingConfig", Alias: "RoutingConfig", Decode: p.RoutingConfig.decode},
		{Name: "shadow", Decode: p.Shadow.decode},
		{Name: "split", Decode: p.Split.decode},
		{Name: "membership", Decode: func(v strict.Value) {
			*hasMembership = true
			p.Membership.decode(v)
		}},
		{Name: "health", Decode: p.Health.decode},
		{Name: "cluster", Decode: p.Cluster.decode},
		{Name: "adapters", Decode: p.Adapters.decode},
	}
}

// decodePools reads the list of named pools. What one leaves out is as in an empty
// file, not as in the default pool.
func (c *Config) decodePools(v strict.Value) {
	taken := claims{}
	isList := v.Each(func(i int, item strict.Value) {
		if i == maxPools {
			item.Reject("is one too many (want %d pools at most)", maxPools)
		}
		if i >= maxPools {
			return
		}
		c.Pools = append(c.Pools, decodePool(item, taken))
	})
	if !isList {
		c.Pools = nil
	}
}

// claims are what pools have named, and as what.
type claims map[string]map[string]bool

// take notes a claim and reports whether another pool has it.
func (c claims) take(kind, name string) (again bool) {
	if c[kind] == nil {
		c[kind] = make(map[string]bool)
	}
	again = c[kind][name]
	c[kind][name] = true
	return again
}

func decodePool(item strict.Value, taken claims) NamedPool {
	p := NamedPool{Pool: defaultPool()}
	p.Cluster.Name = ""
	hasMembership := false
	isMapping := item.Fields(append(p.fields(&hasMembership),
		strict.Field{Name: "name", Decode: func(v strict.Value) { decodePoolName(v, &p.Name, taken) }},
		strict.Field{Name: "models", Decode: func(v strict.Value) { decodeNames(v, &p.Models, "model", taken) }},
		strict.Field{Name: "components", Decode: func(v strict.Value) { decodeNames(v, &p.Components, "component", taken) }},
	)...)
	if !isMapping {
		return p
	}
	if p.Name == "" {
		item.Report("name", "is missing: requests and Envoy's configuration refer to a pool by it")
	}
	if !hasMembership {
		item.Report("membership", noSource)
	}
	if p.Cluster.Name == "" {
		p.Cluster.Name = ClusterPrefix + p.Name
	}
	if slices.Contains(ownClusters(), p.Cluster.Name) {
		item.Report("cluster.name", "%q is a cluster of warmpath's own in Envoy's configuration", p.Cluster.Name)
	}
	if taken.take("cluster", p.Cluster.Name) {
		item.Report("cluster.name", "%q is the cluster of two pools", p.Cluster.Name)
	}
	return p
}

func decodePoolName(v strict.Value, dst *string, taken claims) {
	strict.Text(dst)(v)
	switch {
	case *dst == "":
	case *dst == "default":
		v.Reject("is what metrics and logs call the pool outside of this list")
	case !poolName.MatchString(*dst):
		v.Reject("is not a name (want 1..50 letters, digits, '.', '-', '_', a letter first)")
	case taken.take("component", *dst):
		v.Reject("is the name of two pools, or the component of another")
	}
}

// decodeNames reads a list of models or components.
func decodeNames(v strict.Value, dst *[]string, kind string, taken claims) {
	*dst = []string{}
	listed := make(map[string]bool)
	v.Each(func(i int, item strict.Value) {
		name, ok := item.Scalar("!!str", "the name of a "+kind+" (quote it)")
		star := strings.IndexByte(name, '*')
		switch {
		case !ok:
			return
		case i == maxModels:
			item.Reject("is one too many (want %d at most)", maxModels)
			return
		case i > maxModels:
			return
		case name == "" || len(name) > 256 || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
			item.Reject("is not the name of a %s (want 1..256 bytes, without control characters)", kind)
			return
		case kind == "model" && star >= 0 && star < len(name)-1, kind != "model" && star >= 0:
			item.Reject("has a * where none may be (want it at the end of a model's name)")
			return
		case listed[name]:
			item.Reject("is in the list already")
			return
		case taken.take(kind, name):
			item.Reject("is a %s of two pools (a pool's name is one of its components)", kind)
			return
		}
		*dst, listed[name] = append(*dst, name), true
	})
}

// ownClusters are those that the shipped Envoy configuration has for warmpath itself.
func ownClusters() []string { return []string{"warmpath_ext_proc", "warmpath_xds"} }

// finishPools settles what depends on the whole file.
func (c *Config) finishPools(root strict.Value, hasMembership bool) {
	if slices.Contains(ownClusters(), c.Cluster.Name) {
		root.Report("cluster.name", "%q is a cluster of warmpath's own in Envoy's configuration", c.Cluster.Name)
	}
	for _, p := range c.Pools {
		if p.Cluster.Name == c.Cluster.Name {
			root.Report("cluster.name", "%q is also the cluster of pool %q", c.Cluster.Name, p.Name)
		}
	}
	if !hasMembership && len(c.Pools) > 0 { // every request has to name a pool
		c.Membership.Static = []fleet.Endpoint{}
	}
	if c.Component.Header == c.Tenant.Header {
		root.Report("component.header", "%q is the tenant's header", c.Component.Header)
	}
}

// withLive returns pools with what is live of those that have the same name in next.
// Which models and components belong to them is live as a whole, as one may move from
// one pool to another: while a pool comes or goes, it all waits for the restart.
func withLive(pools, next []NamedPool) []NamedPool {
	merged := slices.Clone(pools)
	same := slices.Equal(names(pools), names(next))
	for i := range merged {
		for _, n := range next {
			if n.Name != merged[i].Name {
				continue
			}
			merged[i].RoutingConfig, merged[i].Shadow, merged[i].Split = n.RoutingConfig, n.Shadow, n.Split
			merged[i].Adapters.Sticky, merged[i].Adapters.Models = n.Adapters.Sticky, n.Adapters.Models
			if same {
				merged[i].Models, merged[i].Components = n.Models, n.Components
			}
		}
	}
	return merged
}

// names are the pools' names, sorted.
func names(pools []NamedPool) []string {
	all := make([]string, len(pools))
	for i, p := range pools {
		all[i] = p.Name
	}
	slices.Sort(all)
	return all
}
