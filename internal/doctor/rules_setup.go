package doctor

import (
	"net"
	"slices"
	"strings"

	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// setupRules are about where warmpath's own configuration and Envoy's differ.
func setupRules() []Rule {
	const away = "RATIONALE.md, What if warmpath is slow, frozen or gone?"
	return []Rule{
		{
			ID: "listens-elsewhere", Severity: Error, What: "Envoy looks for warmpath on its own machine, and not where listen.extProc or listen.xds is",
			Why: "warmpath is never asked, or Envoy never gets the model servers", Source: away,
			Fix: "the same address in both, as `warmpath envoy` prints it; if a port of a container is mapped, leave it", check: listensElsewhere,
		},
		{
			ID: "tls-differs", Severity: Error, What: "TLS of tls.extProc or tls.xds on one side only",
			Why: "no connection comes about: warmpath is never asked, or Envoy never gets the model servers", Source: away,
			Fix: "the transport_socket that `warmpath envoy` prints where warmpath.yaml has tls, and none where it has not", check: tlsDiffers,
		},
		{
			ID: "xds-off", Severity: Error, What: "Envoy asks warmpath for its clusters, and listen.xds is \"\"",
			Why: "Envoy never gets the model servers: every request gets 503", Source: "DOCTOR.md, What was measured",
			Fix: "set listen.xds, or take what `warmpath envoy` prints: the model servers stand in it then", check: xdsOff,
		},
		{
			ID: "pool-not-sent", Severity: Error, What: "a route goes to a cluster that warmpath does not send",
			Why: "it comes from nowhere: every request gets 503", Source: "DOCTOR.md, What was measured",
			Fix: "the same name in the route and in cluster.name (or that of one of the pools)", check: poolNotSent,
		},
	}
}

// server is a listener of warmpath's as its configuration and Envoy's have it.
type server struct {
	name, at string // of the setting; at is "" if that is not known
	secure   bool
	clusters []*cluster
}

// servers are both, where warmpath's configuration is known.
func (g *gateway) servers() []server {
	if !g.setup.Known {
		return nil
	}
	servers := []server{{"extProc", g.setup.ExtProc, g.setup.TLSExtProc, g.extProcs()}}
	if g.setup.ControlPlane {
		xds := server{name: "xds", at: g.setup.XDS, secure: g.setup.TLSXDS}
		names, _ := g.controlClusters()
		for _, name := range names {
			if c := g.cluster(name); c != nil {
				xds.clusters = append(xds.clusters, c)
			}
		}
		servers = append(servers, xds)
	}
	return servers
}

// nearby are the addresses of a cluster if all of them are on Envoy's machine.
func (g *gateway) nearby(c *cluster) []string {
	addresses, _ := g.endpoints(c)
	if slices.ContainsFunc(addresses, func(a string) bool { return a == "" || !loopback(a) }) {
		return nil
	}
	return addresses
}

func listensElsewhere(g *gateway, report report) {
	for _, s := range g.servers() {
		for _, c := range s.clusters {
			there := g.nearby(c)
			if s.at != "" && len(there) > 0 && !slices.ContainsFunc(there, func(a string) bool { return sameSocket(a, s.at) }) {
				report(c.at.with("load_assignment"), "the cluster %s has %s, listen.%s is reached at %s", quoted(c.GetName()), some(there), s.name, s.at)
			}
		}
	}
}

// sameSocket tells whether two addresses may be one: a listener for every interface is
// reached at any of the machine's own.
func sameSocket(a, b string) bool {
	_, port, err := net.SplitHostPort(a)
	_, other, also := net.SplitHostPort(b)
	if strings.HasPrefix(a, "unix:") || err != nil || also != nil || !loopback(a) || !loopback(b) {
		return a == b
	}
	return port == other
}

func tlsDiffers(g *gateway, report report) {
	for _, s := range g.servers() {
		for _, c := range s.clusters {
			secure, known := c.tls()
			switch at := c.at.with("transport_socket"); {
			case !known || secure == s.secure:
			case s.secure:
				report(at, "the cluster %s has none, tls.%s is set", quoted(c.GetName()), s.name)
			case len(g.nearby(c)) > 0: // elsewhere a sidecar may take it
				report(at, "the cluster %s has one, tls.%s is not set", quoted(c.GetName()), s.name)
			}
		}
	}
}

// tls tells whether the cluster's connections are secured, as far as can be seen.
func (c *cluster) tls() (secure, known bool) {
	if len(c.GetTransportSocketMatches()) > 0 {
		return false, false
	}
	switch message(c.GetTransportSocket().GetTypedConfig()).(type) {
	case *tlsv3.UpstreamTlsContext:
		return true, true
	case *rawv3.RawBuffer:
		return false, true
	}
	return false, c.GetTransportSocket() == nil
}

// ownControl are the places where Envoy names a cluster of warmpath's as its control
// plane for clusters.
func (g *gateway) ownControl() (names []string, places []path) {
	source, at := g.clusterSource()
	for i, s := range source.GetGrpcServices() {
		name := s.GetEnvoyGrpc().GetClusterName()
		addresses, _ := g.endpoints(g.cluster(name))
		if strings.Contains(name, "warmpath") || g.setup.XDS != "" && slices.Contains(addresses, g.setup.XDS) {
			names, places = append(names, name), append(places, at.item("grpc_services", i).with("envoy_grpc", "cluster_name"))
		}
	}
	return names, places
}

func xdsOff(g *gateway, report report) {
	if !g.setup.Known || g.setup.ControlPlane {
		return
	}
	names, places := g.ownControl()
	for i, name := range names {
		report(places[i], "clusters are asked for in the cluster %s", quoted(name))
	}
}

func poolNotSent(g *gateway, report report) {
	if names, _ := g.ownControl(); len(names) == 0 || !g.setup.Known || !g.setup.ControlPlane || g.dump {
		return
	}
	for _, m := range g.looked() {
		for _, r := range m.routes {
			for _, name := range r.clusters {
				if g.cluster(name) == nil && !slices.Contains(g.setup.Pools, name) {
					report(r.at.with("route", "cluster"), "%s goes to the cluster %s, warmpath sends %q", r.label(), quoted(name), g.setup.Pools)
				}
			}
		}
	}
}
