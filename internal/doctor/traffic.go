package doctor

import (
	"slices"
	"strings"
	"time"

	overridev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What warmpath sends, as extproc has it, and what it is called in the shipped files.
const (
	destination = "x-gateway-destination-endpoint"
	namespace   = "envoy.lb"
	poolHeader  = "x-warmpath-pool"
	usualName   = "envoy.filters.http.ext_proc"
	// policyPackage begins the types of the policies that Envoy itself has.
	policyPackage = "envoy.extensions.load_balancing_policies."

	minute       = time.Minute
	shortest     = 10 * minute // of what may end a stream
	defaultRoute = 15 * time.Second
	defaultIdle  = 5 * minute
	// defaultBuffer is per_connection_buffer_limit_bytes of a listener that has none.
	defaultBuffer  = 1 << 20
	defaultBreaker = 1024
)

// looked are the connection managers that are looked at: those with warmpath's filter, or
// all if none has it.
func (g *gateway) looked() []*manager {
	if with := g.processors(); len(with) > 0 {
		return with
	}
	return g.managers
}

// processors are the managers that have warmpath's filter.
func (g *gateway) processors() (with []*manager) {
	for _, m := range g.managers {
		if m.processor != nil {
			with = append(with, m)
		}
	}
	return with
}

// isPool tells whether a cluster is one of model servers, as far as can be seen.
func (g *gateway) isPool(name string) bool {
	return g.isPoolForSure(name) || !g.setup.Known && g.cluster(name) == nil && g.overCDS()
}

// isPoolForSure tells whether it is named as one or reads choices.
func (g *gateway) isPoolForSure(name string) bool {
	if g.setup.Known && has(g.setup.Pools, name) {
		return true
	}
	c := g.cluster(name)
	if c == nil {
		return false
	}
	policy, _ := c.overrideHost()
	return policy != nil
}

// findToPools finds the routes to pools. Where nothing tells what is a pool, every route
// is one to a pool.
func (g *gateway) findToPools() (routes []*route) {
	var all []*route
	for _, m := range g.looked() {
		for _, r := range m.routes {
			all = append(all, r)
			if r.byHeader != "" || slices.ContainsFunc(r.clusters, g.isPool) {
				routes = append(routes, r)
			}
		}
	}
	if !slices.ContainsFunc(routes, func(r *route) bool { return r.byHeader == "" }) {
		return all
	}
	return routes
}

func (g *gateway) findSteered() (routes []*route) {
	for _, r := range g.toPools() {
		if !r.off {
			routes = append(routes, r)
		}
	}
	return routes
}

func (g *gateway) findPools() (pools []*cluster) {
	known := make(map[*cluster]bool)
	add := func(c *cluster) {
		if c != nil && !known[c] {
			known[c] = true
			pools = append(pools, c)
		}
	}
	for _, r := range g.toPools() {
		for _, name := range r.clusters {
			add(g.cluster(name))
		}
	}
	for _, c := range g.clusters { // those that only a header names
		if c.policy != nil {
			add(c)
		}
	}
	return pools
}

// extProcs are the clusters in which warmpath is asked, where they are in the
// configuration.
func (g *gateway) extProcs() (clusters []*cluster) {
	known := make(map[*cluster]bool)
	for _, config := range g.processorConfigs() {
		if c := g.cluster(config.cluster()); c != nil && !known[c] {
			known[c] = true
			clusters = append(clusters, c)
		}
	}
	return clusters
}

// overrideHost is the policy that reads warmpath's choice, nil without one.
func (c *cluster) overrideHost() (*overridev3.OverrideHost, path) {
	if c == nil {
		return nil, nil
	}
	return c.policy, c.policyAt
}

// readOverrideHost finds it: of several policies Envoy takes the first that it knows.
func (c *cluster) readOverrideHost() (*overridev3.OverrideHost, path) {
	for i, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		config := p.GetTypedExtensionConfig().GetTypedConfig()
		if m, ok := message(config).(*overridev3.OverrideHost); ok {
			return m, c.at.with("load_balancing_policy").item("policies", i).with("typed_extension_config", "typed_config")
		}
		if strings.Contains(config.GetTypeUrl(), "/"+policyPackage) {
			return nil, nil
		}
	}
	return nil, nil
}

// byHeader tells whether the cluster reads the choice from a header.
func (c *cluster) byHeader() bool {
	policy, _ := c.overrideHost()
	return slices.ContainsFunc(policy.GetOverrideHostSources(), func(s *overridev3.OverrideHost_OverrideHostSource) bool { return s.GetHeader() != "" })
}

// byMetadata tells whether some pool reads the choice from metadata; those that come
// over CDS do.
func (g *gateway) byMetadata() bool {
	known := g.pools()
	return len(known) == 0 || slices.ContainsFunc(known, func(c *cluster) bool {
		policy, _ := c.overrideHost()
		return slices.ContainsFunc(policy.GetOverrideHostSources(), func(s *overridev3.OverrideHost_OverrideHostSource) bool { return s.GetMetadata() != nil })
	}) || slices.ContainsFunc(g.toPools(), func(r *route) bool {
		return slices.ContainsFunc(r.clusters, func(name string) bool { return g.cluster(name) == nil })
	})
}

// bodyLimit is how much of a request's body Envoy keeps, in bytes. The older field of a
// route only lowers the listener's limit.
func (r *route) bodyLimit() (limit uint64, at path) {
	limit, at = defaultBuffer, r.at
	if n := r.m.listener.GetPerConnectionBufferLimitBytes(); n != nil {
		limit = uint64(n.GetValue())
	}
	for _, level := range []struct {
		at    path
		whole *wrapperspb.UInt64Value
		older *wrapperspb.UInt32Value
	}{
		//lint:ignore SA1019 older configurations have it
		{r.at, r.GetRequestBodyBufferLimit(), r.GetPerRequestBufferLimitBytes()},
		//lint:ignore SA1019 older configurations have it
		{r.hostAt, r.host.GetRequestBodyBufferLimit(), r.host.GetPerRequestBufferLimitBytes()},
	} {
		switch {
		case level.whole != nil:
			return max(limit, level.whole.GetValue()), level.at.with("request_body_buffer_limit")
		case level.older != nil:
			return min(limit, uint64(level.older.GetValue())), level.at.with("per_request_buffer_limit_bytes")
		}
	}
	return limit, at
}

// removes tells whether a header of requests is removed on the way to the model server.
func (r *route) removes(header string) (bool, path) {
	for _, level := range []struct {
		list []string
		at   path
	}{
		{r.weighted.GetRequestHeadersToRemove(), r.weightedAt},
		{r.GetRequestHeadersToRemove(), r.at},
		{r.host.GetRequestHeadersToRemove(), r.hostAt},
		{r.m.routeConfig.GetRequestHeadersToRemove(), r.m.routeConfigAt},
	} {
		if has(level.list, header) {
			return true, level.at.with("request_headers_to_remove")
		}
	}
	return false, nil
}

// seconds is a duration or its default.
func seconds(d *durationpb.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.AsDuration()
}

// ends tells whether a limit of time ends a stream too early; 0 is no limit.
func ends(d time.Duration) bool { return d > 0 && d < shortest }

// loopback tells whether an address is reached from its machine only.
func loopback(address string) bool {
	return address == "" || strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "[::1]") || strings.HasPrefix(address, "localhost:")
}
