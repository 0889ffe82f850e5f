package doctor

import (
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// manager is an HTTP connection manager.
type manager struct {
	*hcmv3.HttpConnectionManager
	at       path
	listener *listenerv3.Listener
	filters  []httpFilter
	// processor is warmpath's filter, nil without one; foreign are ext_proc filters that
	// are not taken for it.
	processor *processor
	foreign   []*processor
	routes    []*route
	// routeConfig is that of the routes, nil if it is not known.
	routeConfig   *routev3.RouteConfiguration
	routeConfigAt path
}

// httpFilter is one of the chain.
type httpFilter struct {
	name, kind string // kind: the last part of its type
	at         path
	disabled   bool
	message    proto.Message // nil if the type is not known here
	configAt   path          // of the message
}

// route is a route to a cluster.
type route struct {
	*routev3.Route
	at     path
	action *routev3.RouteAction
	host   *routev3.VirtualHost
	hostAt path
	m      *manager
	// clusters are those that it may go to; byHeader: a header names it.
	clusters []string
	byHeader string
	// off: warmpath's filter is disabled, and offAt is where. override is what the route
	// has of its own, nil for nothing.
	off        bool
	offAt      path
	override   *extprocv3.ExtProcOverrides
	overrideAt path
}

func (g *gateway) manager(h *hcmv3.HttpConnectionManager, l *listenerv3.Listener, at path) *manager {
	m := &manager{HttpConnectionManager: h, at: at, listener: l}
	for i, f := range h.GetHttpFilters() {
		url := f.GetTypedConfig().GetTypeUrl()
		at := at.item("http_filters", i)
		filter := httpFilter{
			name: f.GetName(), kind: url[strings.LastIndexByte(url, '/')+1:], at: at,
			disabled: f.GetDisabled(), message: message(f.GetTypedConfig()), configAt: at.with("typed_config"),
		}
		if matched, ok := filter.message.(*matchingv3.ExtensionWithMatcher); ok {
			filter.message = message(matched.GetExtensionConfig().GetTypedConfig())
			filter.configAt = at.with("typed_config", "extension_config", "typed_config")
		}
		m.filters = append(m.filters, filter)
	}
	m.processor, m.foreign = g.processorOf(m)
	m.routeConfig, m.routeConfigAt = h.GetRouteConfig(), at.with("route_config")
	if h.GetRds() != nil {
		d := g.delivered[h.GetRds().GetRouteConfigName()]
		m.routeConfig, m.routeConfigAt = d.config, d.at
	}
	for i, host := range m.routeConfig.GetVirtualHosts() {
		hostAt := m.routeConfigAt.item("virtual_hosts", i)
		for j, r := range host.GetRoutes() {
			if r.GetRoute() != nil {
				m.routes = append(m.routes, m.route(r, hostAt.item("routes", j), host, hostAt))
			}
		}
	}
	return m
}

func (m *manager) route(r *routev3.Route, at path, host *routev3.VirtualHost, hostAt path) *route {
	result := &route{Route: r, at: at, action: r.GetRoute(), host: host, hostAt: hostAt, m: m, byHeader: r.GetRoute().GetClusterHeader()}
	if c := r.GetRoute().GetCluster(); c != "" {
		result.clusters = []string{c}
	}
	for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
		if w.GetName() != "" {
			result.clusters = append(result.clusters, w.GetName())
		}
	}
	if m.processor != nil {
		result.overrides()
	}
	return result
}

// overrides finds what the route has of its own for warmpath's filter: the nearest of the
// three levels counts.
func (r *route) overrides() {
	decided := false
	name := r.m.processor.name
	for _, level := range []struct {
		at  path
		any *anypb.Any
	}{
		{r.at, r.GetTypedPerFilterConfig()[name]},
		{r.hostAt, r.host.GetTypedPerFilterConfig()[name]},
		{r.m.routeConfigAt, r.m.routeConfig.GetTypedPerFilterConfig()[name]},
	} {
		at, m := level.at.with("typed_per_filter_config", name), message(level.any)
		if wrapped, ok := m.(*routev3.FilterConfig); ok && !decided {
			if wrapped.GetDisabled() {
				r.off, r.offAt, decided = true, at.with("disabled"), true
				continue
			}
			m, at = message(wrapped.GetConfig()), at.with("config")
		}
		own, ok := m.(*extprocv3.ExtProcPerRoute)
		if !ok || decided {
			continue
		}
		decided = true
		if own.GetDisabled() {
			r.off, r.offAt = true, at.with("disabled")
		} else {
			r.override, r.overrideAt = own.GetOverrides(), at.with("overrides")
		}
	}
	switch mode := r.mode(); {
	case r.m.processor.disabled && !decided:
		r.off, r.offAt = true, r.m.processor.at.with("disabled")
	case !r.off && mode.silent():
		r.off, r.offAt = true, mode.at
	}
}

// keptEarly tells which of the headers of clients are not removed before any filter
// runs.
func (m *manager) keptEarly(headers ...string) (kept []string) {
	removed := make(map[string]bool)
	for _, e := range m.GetEarlyHeaderMutationExtensions() {
		mutation, ok := message(e.GetTypedConfig()).(*earlyv3.HeaderMutation)
		if !ok {
			continue
		}
		for _, change := range mutation.GetMutations() {
			if remove, ok := change.GetAction().(*mutationv3.HeaderMutation_Remove); ok {
				removed[strings.ToLower(remove.Remove)] = true
			}
			if pattern := change.GetRemoveOnMatch().GetKeyMatcher().GetPrefix(); pattern != "" {
				for _, h := range headers {
					if strings.HasPrefix(h, strings.ToLower(pattern)) {
						removed[h] = true
					}
				}
			}
		}
	}
	for _, h := range headers {
		if !removed[h] {
			kept = append(kept, h)
		}
	}
	return kept
}
