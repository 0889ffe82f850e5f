package doctor

import routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

// route is a route to a cluster, or the part of one that goes to a weighted cluster which
// has settings of its own.
type route struct {
	*routev3.Route
	at     path
	action *routev3.RouteAction
	host   *routev3.VirtualHost
	hostAt path
	m      *manager
	// weighted is the weighted cluster of the part, nil for the whole route.
	weighted   *routev3.WeightedCluster_ClusterWeight
	weightedAt path
	// clusters are those that it may go to; byHeader: a header names it, as byHeaderAt says.
	clusters   []string
	byHeader   string
	byHeaderAt path
	// off: warmpath's filter is disabled, and offAt is where.
	off   bool
	offAt path
	// own is what the levels have for warmpath's filter, the nearest first.
	own []override
}

// routesOf are the route, and its parts that go to weighted clusters with settings of
// their own.
func (m *manager) routesOf(r *routev3.Route, at path, host *routev3.VirtualHost, hostAt path) (routes []*route) {
	whole := route{Route: r, at: at, action: r.GetRoute(), host: host, hostAt: hostAt, m: m}
	add := func(part route) {
		if m.processor != nil {
			part.settle()
		}
		routes = append(routes, &part)
	}
	if c := r.GetRoute().GetCluster(); c != "" {
		whole.clusters = []string{c}
	}
	whole.byHeader, whole.byHeaderAt = r.GetRoute().GetClusterHeader(), at.with("route", "cluster_header")
	weighted := r.GetRoute().GetWeightedClusters().GetClusters()
	for i, w := range weighted {
		part := whole
		part.weighted, part.weightedAt = w, at.with("route", "weighted_clusters").item("clusters", i)
		switch {
		case w.GetName() == "":
			part.clusters, part.byHeader, part.byHeaderAt = nil, w.GetClusterHeader(), part.weightedAt.with("cluster_header")
			add(part)
		case m.processor != nil && w.GetTypedPerFilterConfig()[m.processor.name] != nil:
			part.clusters = []string{w.GetName()}
			add(part)
		default:
			whole.clusters = append(whole.clusters, w.GetName())
		}
	}
	if len(weighted) == 0 || len(whole.clusters) > 0 {
		add(whole)
	}
	return routes
}

// settle finds what the route has of its own for warmpath's filter.
func (r *route) settle() {
	set := r.setting(r.m.processor.httpFilter)
	r.off, r.offAt, r.own = set.off, set.offAt, overrides(set)
	if mode := r.mode(); !r.off && mode.silent() {
		r.off, r.offAt = true, mode.at
	}
}
