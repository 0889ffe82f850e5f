package doctor

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	overridev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Setup is what is known of warmpath's own configuration.
type Setup struct {
	// Known: there is one; without it the other fields are the defaults.
	Known bool
	// BodyLimit is limits.requestBodyBytes.
	BodyLimit int64
	// Pools are the names of the clusters of the pools.
	Pools []string
	// TenantHeader is tenant.header.
	TenantHeader string
	// Inspection: inspection.share is more than 0. Retries: retries are switched on.
	Inspection, Retries bool
	// ControlPlane: listen.xds is set.
	ControlPlane bool
	// Members are the addresses of the endpoints of the default pool, nil if they are
	// not known.
	Members []string
	// ExtProc is where listen.extProc is reached, "host:port" or "unix:/path", and XDS
	// where listen.xds is; "" if it is not known.
	ExtProc, XDS string
	// TLSExtProc and TLSXDS: these listeners have TLS.
	TLSExtProc, TLSXDS bool
	// ClosingEngine: the engines close connections without a word, as llama.cpp does.
	ClosingEngine bool
}

// gateway is a configuration as the rules see it.
type gateway struct {
	setup     Setup
	doc       *Document
	dump      bool
	bootstrap *bootstrapv3.Bootstrap
	root      path // of the bootstrap
	managers  []*manager
	clusters  []*cluster
	named     map[string]*cluster // the first of a name
	// toPools are the routes to pools, whether warmpath's filter is on there or not;
	// steered are those of them on which it is; judged are those by which filters are
	// judged; pools are the clusters of model servers that are in the configuration;
	// retries are the retry policies of routes to pools. Each is found once, after
	// everything is read.
	toPools, steered, judged func() []*route
	pools                    func() []*cluster
	retries                  func() []*retrying
	// delivered are route configurations that came over RDS, by name.
	delivered map[string]delivered
	// extensions are configurations of filters that came over ECDS, by name.
	extensions map[string]extension
	// assigned are endpoints that came over EDS, by the service's name.
	assigned map[string]*endpointv3.ClusterLoadAssignment
	// complaints are what could not be understood.
	complaints []complaint
}

type delivered struct {
	at     path
	config *routev3.RouteConfiguration
}

type extension struct {
	at     path
	config *anypb.Any
}

// cluster is one of Envoy's, with its place.
type cluster struct {
	*clusterv3.Cluster
	at path
	// policy is override_host, nil without one.
	policy   *overridev3.OverrideHost
	policyAt path
	// options are its HttpProtocolOptions, nil without any.
	options   *upstreamv3.HttpProtocolOptions
	optionsAt path
	// dynamic: it came over CDS.
	dynamic bool
}

func (g *gateway) cluster(name string) *cluster { return g.named[name] }

func (g *gateway) addCluster(c *cluster) {
	c.policy, c.policyAt = c.readOverrideHost()
	const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	c.options, _ = message(c.GetTypedExtensionProtocolOptions()[options]).(*upstreamv3.HttpProtocolOptions)
	c.optionsAt = c.at.with("typed_extension_protocol_options", options)
	g.clusters = append(g.clusters, c)
	if g.named[c.GetName()] == nil {
		g.named[c.GetName()] = c
	}
}

// readBootstrap makes the gateway of a file.
func (g *gateway) readBootstrap() error {
	g.bootstrap = new(bootstrapv3.Bootstrap)
	if err := g.decode(g.bootstrap); err != nil {
		return err
	}
	static := g.bootstrap.GetStaticResources()
	at := path{"static_resources"}
	for i, c := range static.GetClusters() {
		g.addCluster(&cluster{Cluster: c, at: at.item("clusters", i)})
	}
	for i, l := range static.GetListeners() {
		g.listener(l, at.item("listeners", i))
	}
	return nil
}

// readDump makes the gateway of what Envoy's admin listener answers.
func (g *gateway) readDump() error {
	g.dump = true
	dump := new(adminv3.ConfigDump)
	if err := g.decode(dump); err != nil {
		return err
	}
	var later []func()
	for i, section := range dump.GetConfigs() {
		at := path{"configs", index(i)}
		switch m := message(section).(type) {
		case *adminv3.BootstrapConfigDump:
			g.bootstrap, g.root = m.GetBootstrap(), at.with("bootstrap")
		case *adminv3.ClustersConfigDump:
			g.dumpedClusters(m, at)
		case *adminv3.RoutesConfigDump:
			for j, r := range m.GetDynamicRouteConfigs() {
				if config, ok := message(r.GetRouteConfig()).(*routev3.RouteConfiguration); ok {
					g.delivered[config.GetName()] = delivered{at.item("dynamic_route_configs", j).with("route_config"), config}
				}
			}
		case *adminv3.EcdsConfigDump:
			for j, f := range m.GetEcdsFilters() {
				if config, ok := message(f.GetEcdsFilter()).(*corev3.TypedExtensionConfig); ok {
					g.extensions[config.GetName()] = extension{at.item("ecds_filters", j).with("ecds_filter", "typed_config"), config.GetTypedConfig()}
				}
			}
		case *adminv3.EndpointsConfigDump:
			for _, e := range m.GetDynamicEndpointConfigs() {
				if a, ok := message(e.GetEndpointConfig()).(*endpointv3.ClusterLoadAssignment); ok {
					g.assigned[a.GetClusterName()] = a
				}
			}
		case *adminv3.ListenersConfigDump:
			later = append(later, func() { g.dumpedListeners(m, at) })
		}
	}
	for _, read := range later { // which name routes
		read()
	}
	return nil
}

func (g *gateway) dumpedClusters(m *adminv3.ClustersConfigDump, at path) {
	add := func(list string, i int, a *anypb.Any, dynamic bool) {
		if c, ok := message(a).(*clusterv3.Cluster); ok {
			g.addCluster(&cluster{Cluster: c, at: at.item(list, i).with("cluster"), dynamic: dynamic})
		}
	}
	for i, c := range m.GetStaticClusters() {
		add("static_clusters", i, c.GetCluster(), false)
	}
	for i, c := range m.GetDynamicActiveClusters() {
		add("dynamic_active_clusters", i, c.GetCluster(), true)
	}
}

func (g *gateway) dumpedListeners(m *adminv3.ListenersConfigDump, at path) {
	for i, l := range m.GetStaticListeners() {
		if listener, ok := message(l.GetListener()).(*listenerv3.Listener); ok {
			g.listener(listener, at.item("static_listeners", i).with("listener"))
		}
	}
	for i, l := range m.GetDynamicListeners() {
		if listener, ok := message(l.GetActiveState().GetListener()).(*listenerv3.Listener); ok {
			g.listener(listener, at.item("dynamic_listeners", i).with("active_state", "listener"))
		}
	}
}

// decode reads the document, and remembers what it could not understand.
func (g *gateway) decode(m proto.Message) error {
	var err error
	g.complaints, err = g.doc.decode(m)
	return err
}

// listener adds the connection managers of a listener.
func (g *gateway) listener(l *listenerv3.Listener, at path) {
	chain := func(c *listenerv3.FilterChain, at path) {
		for i, f := range c.GetFilters() {
			if m, ok := message(f.GetTypedConfig()).(*hcmv3.HttpConnectionManager); ok {
				g.managers = append(g.managers, g.manager(m, l, at.item("filters", i).with("typed_config")))
			}
		}
	}
	for i, c := range l.GetFilterChains() {
		chain(c, at.item("filter_chains", i))
	}
	if l.GetDefaultFilterChain() != nil {
		chain(l.GetDefaultFilterChain(), at.with("default_filter_chain"))
	}
}

// overCDS tells whether clusters may come that are not in the configuration.
func (g *gateway) overCDS() bool { return g.bootstrap.GetDynamicResources().GetCdsConfig() != nil }

// overLDS tells whether there are listeners that are not in the configuration.
func (g *gateway) overLDS() bool {
	return !g.dump && g.bootstrap.GetDynamicResources().GetLdsConfig() != nil
}

// socket is "ip:port" of an address, as warmpath's membership spells it, "unix:/path" of a
// pipe, "" if it is neither.
func socket(a *corev3.Address) string {
	if pipe := a.GetPipe().GetPath(); pipe != "" {
		return "unix:" + pipe
	}
	s := a.GetSocketAddress()
	if s == nil {
		return ""
	}
	host := s.GetAddress()
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(s.GetPortValue()), 10))
}

// has tells whether a list of names has one, in any case.
func has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
