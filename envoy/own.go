package envoy

import (
	"fmt"
	"net/netip"
	"strings"
)

// own makes the pool a cluster of Envoy's configuration itself, in place of the
// control plane's.
func (o Options) own(text string) (string, error) {
	for _, key := range []string{"dynamic_resources:", "              - name: other_pools", "  - name: " + XDSCluster} {
		part, err := cut(text, key)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(strings.Replace(text, part, "", 1), "\n\n\n", "\n\n")
	}
	cluster, err := o.ownCluster()
	if err != nil {
		return "", err
	}
	const intro = "measurements. The pool's own cluster, "
	before, rest, ok := strings.Cut(text, intro)
	_, after, found := strings.Cut(rest, "\n")
	if !ok || !found {
		return "", fmt.Errorf("bootstrap.yaml: no %q", intro)
	}
	text = before + "measurements.\n" + after
	text, err = apply(text, []edit{
		{"#                       ◄──delta xDS──    :9003 warmpath   which servers are there?\n", "", 1},
		{"            # The pool's cluster arrives later, by CDS; Envoy would refuse to start without this line.\n            validate_clusters: false\n", "", 1},
	})
	return strings.TrimRight(text, "\n") + "\n\n" + indent(cluster, "  - "), err
}

// ownCluster is cluster.yaml with endpoints of its own.
func (o Options) ownCluster() (string, error) {
	name := o.Pool
	if name == "" {
		name = PoolCluster
	}
	var endpoints strings.Builder
	for _, e := range o.Endpoints {
		at, err := netip.ParseAddrPort(e)
		if err != nil || at.Port() == 0 {
			return "", fmt.Errorf("endpoint %.80q: want ip:port", e)
		}
		fmt.Fprintf(&endpoints, "    - endpoint: {address: {socket_address: {address: %q, port_value: %d}}}\n", at.Addr().String(), at.Port())
	}
	_, body, ok := strings.Cut(cluster, "\nname: "+PoolCluster+"\n")
	if !ok {
		return "", fmt.Errorf("cluster.yaml: no name %s", PoolCluster)
	}
	name = scalar(name)
	body = "# The model servers: the same, with the same addresses, as in warmpath's membership.\nname: " + name + "\n" + body
	eds, err := cut(body, "eds_cluster_config:")
	if err != nil {
		return "", err
	}
	list := "load_assignment:\n  cluster_name: " + name + "\n  endpoints:\n  - lb_endpoints:\n" + endpoints.String()
	if len(o.Endpoints) == 0 {
		list = "load_assignment: {cluster_name: " + name + "}\n"
	}
	edits := []edit{{"type: EDS\n", "type: STATIC\n", 1}, {eds, list, 1}}
	if o.HeaderSteering {
		edits = append(edits, edit{metadataSource, headerSource, 1})
	}
	if body, err = apply(body, edits); err != nil || o.RequestsPerConnection == 0 {
		return body, err
	}
	_, hint, ok := strings.Cut(body, "\n# Engines that close kept-alive connections")
	if !ok {
		return "", fmt.Errorf("cluster.yaml: nothing of engines that close connections")
	}
	return strings.TrimSuffix(body, "# Engines that close kept-alive connections"+hint) + fmt.Sprintf(limitedConnections, o.RequestsPerConnection), nil
}

// limitedConnections are for engines that close kept-alive connections without a word.
const limitedConnections = `# The engines close kept-alive connections without a word: a request that met one would get 503.
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    common_http_protocol_options: {max_requests_per_connection: %d}
    explicit_http_config: {http_protocol_options: {}}
`

const (
	metadataSource = `        # From metadata only: a header source would let any client choose its server whenever
        # ext_proc is silent. The value is a list; each retry takes the next.
        override_host_sources:
        - metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}
`
	headerSource = `        # From a header: without the removal of a client's own copy (early_header_mutation_extensions)
        # any client would choose its server. The value is a list; each retry takes the next.
        override_host_sources:
        - header: x-gateway-destination-endpoint
`
)
