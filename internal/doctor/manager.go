package doctor

import (
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	"google.golang.org/protobuf/proto"
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
	// unseen says why what it does is not known, "" if it is, and unseenAt where.
	unseen   string
	unseenAt path
	// matchedAt is where a matcher says whether it runs, nil without one.
	matchedAt path
}

func (g *gateway) manager(h *hcmv3.HttpConnectionManager, l *listenerv3.Listener, at path) *manager {
	m := &manager{HttpConnectionManager: h, at: at, listener: l}
	for i, f := range h.GetHttpFilters() {
		at := at.item("http_filters", i)
		filter := httpFilter{name: f.GetName(), at: at, disabled: f.GetDisabled()}
		filter.kind, filter.message, filter.configAt = typed(f.GetTypedConfig(), at.with("typed_config"))
		if f.GetConfigDiscovery() != nil {
			g.discover(&filter)
		}
		if matched, ok := filter.message.(*matchingv3.ExtensionWithMatcher); ok {
			filter.matchedAt = filter.configAt
			filter.kind, filter.message, filter.configAt = typed(matched.GetExtensionConfig().GetTypedConfig(), filter.configAt.with("extension_config", "typed_config"))
		}
		if _, ok := filter.message.(*compositev3.Composite); ok {
			filter.unseen, filter.unseenAt = "runs others", filter.configAt
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
				m.routes = append(m.routes, m.routesOf(r, hostAt.item("routes", j), host, hostAt)...)
			}
		}
	}
	return m
}

// discover takes the configuration of a filter that came over ECDS, where it is known.
func (g *gateway) discover(f *httpFilter) {
	there, ok := g.extensions[f.name]
	if !ok {
		f.unseen, f.unseenAt = "comes over ECDS", f.at.with("config_discovery")
	} else {
		f.kind, f.message, f.configAt = typed(there.config, there.at)
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
			for _, h := range headers {
				if takes(change.GetRemoveOnMatch().GetKeyMatcher(), h) {
					removed[h] = true
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
