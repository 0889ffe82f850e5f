package doctor

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

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
	// own are the settings that the levels have for warmpath's filter, the nearest first.
	own []level
}

// level is what a weighted cluster, route, virtual host or route configuration has of its
// own for warmpath's filter.
type level struct {
	*extprocv3.ExtProcOverrides
	at path
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

// settle finds what the route has of its own for warmpath's filter. Whether it is on the
// nearest level says; other settings are those of the nearest that has them.
func (r *route) settle() {
	decided := false
	name := r.m.processor.name
	for _, l := range []struct {
		at  path
		any *anypb.Any
	}{
		{r.weightedAt, r.weighted.GetTypedPerFilterConfig()[name]},
		{r.at, r.GetTypedPerFilterConfig()[name]},
		{r.hostAt, r.host.GetTypedPerFilterConfig()[name]},
		{r.m.routeConfigAt, r.m.routeConfig.GetTypedPerFilterConfig()[name]},
	} {
		off, own, known := perRoute(message(l.any), l.at.with("typed_per_filter_config", name))
		if !known {
			continue
		}
		if off && !decided {
			r.off, r.offAt = true, own.at
		}
		if decided = true; off {
			break // what is further away is not looked at
		}
		r.own = append(r.own, own)
	}
	switch mode := r.mode(); {
	case r.m.processor.disabled && !decided:
		r.off, r.offAt = true, r.m.processor.at.with("disabled")
	case !r.off && mode.silent():
		r.off, r.offAt = true, mode.at
	}
}

// perRoute reads the settings of a level; not known if there are none that say anything.
// Where the filter is off, their place is what says so.
func perRoute(m proto.Message, at path) (off bool, own level, known bool) {
	if wrapped, ok := m.(*routev3.FilterConfig); ok {
		if wrapped.GetDisabled() {
			return true, level{at: at.with("disabled")}, true
		}
		m, at = message(wrapped.GetConfig()), at.with("config")
	}
	settings, ok := m.(*extprocv3.ExtProcPerRoute)
	if ok && settings.GetDisabled() {
		return true, level{at: at.with("disabled")}, true
	}
	return false, level{settings.GetOverrides(), at.with("overrides")}, ok
}
