package doctor

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// controlRules are about the control plane, tracing and Envoy's admin listener.
func controlRules() []Rule {
	const linear = "RATIONALE.md, Why linear caches and delta xDS?"
	return []Rule{
		{
			ID: "xds-unknown", Severity: Error, What: "ads_config names a cluster that is nowhere",
			Why: "Envoy never gets the model servers: every request gets 503", Source: linear, Fix: "add the cluster that `warmpath envoy` prints", check: xdsUnknown,
		},
		{
			ID: "xds-not-delta", Severity: Error, What: "ads_config is not DELTA_GRPC",
			Why:    "warmpath serves delta xDS only",
			Source: "RATIONALE.md, Why does one unknown pool not hold up the others after a restart?", Fix: "api_type: DELTA_GRPC", check: xdsNotDelta,
		},
		{
			ID: "xds-http1", Severity: Error, What: "the cluster of warmpath's control plane does not speak HTTP/2",
			Why: "gRPC needs it: Envoy never gets the model servers", Source: linear, Fix: "http2_protocol_options in its typed_extension_protocol_options", check: xdsHTTP1,
		},
		{
			ID: "xds-keepalive", Severity: Note, What: "no connection_keepalive to the control plane",
			Why: "a connection that the network has dropped silently is noticed late, and with it new members", Source: linear,
			Fix: "http2_protocol_options: {connection_keepalive: {interval: 10s, timeout: 5s}}", check: xdsKeepalive,
		},
		{
			ID: "xds-backoff", Severity: Note, What: "no retry_back_off to the control plane",
			Why: "after an outage new members are used after 1.8 to 3.9 s, with it within a second", Source: "DOCTOR.md, What was measured",
			Fix: "retry_policy: {retry_back_off: {base_interval: 0.2s, max_interval: 1s}} in the envoy_grpc of ads_config", check: xdsBackoff,
		},
		{
			ID: "no-node", Severity: Warning, What: "node.id or node.cluster is missing",
			Why: "Envoy does not start with a control plane unless --service-node and --service-cluster name it", Source: "DOCTOR.md, What was measured",
			Fix: "node: {id: envoy, cluster: warmpath}", check: noNode,
		},
		{
			ID: "sampling-zero", Severity: Warning, What: "random_sampling is 0",
			Why: "it overrules a client that samples: its trace ends here", Source: "TRACING.md, What is sampled",
			Fix: "random_sampling: {value: 100}, and a sampler that decides", check: samplingZero,
		},
		{
			ID: "span-dropped", Severity: Warning, What: "emit_client_span: false",
			Why: "the decision's span is dropped from the trace", Source: "TRACING.md, What is sampled",
			Fix: "take emit_client_span out", check: spanDropped,
		},
		{
			ID: "admin-open", Severity: Warning, What: "Envoy's admin listener is reached from other machines",
			Why: "whoever reaches it reads the configuration and can end Envoy", Source: "SECURITY.md, Who is trusted",
			Fix: "bind it to 127.0.0.1", check: adminOpen,
		},
	}
}

// controlPlane is the stream on which Envoy asks warmpath for its clusters, nil if it
// asks somebody else or nobody.
func (g *gateway) controlPlane() (*corev3.ApiConfigSource, path) {
	source, at := g.clusterSource()
	if source == nil || g.setup.Known && !g.setup.ControlPlane {
		return nil, nil
	}
	for _, s := range source.GetGrpcServices() {
		name := s.GetEnvoyGrpc().GetClusterName()
		if strings.Contains(name, "warmpath") || len(g.processors()) > 0 && !strings.Contains(name, "xds-grpc") {
			return source, at
		}
	}
	return nil, nil
}

// clusterSource is where Envoy asks for its clusters, nil if it asks nobody.
func (g *gateway) clusterSource() (*corev3.ApiConfigSource, path) {
	dynamic := g.bootstrap.GetDynamicResources()
	if dynamic.GetCdsConfig().GetAds() != nil {
		return dynamic.GetAdsConfig(), g.root.with("dynamic_resources", "ads_config")
	}
	return dynamic.GetCdsConfig().GetApiConfigSource(), g.root.with("dynamic_resources", "cds_config", "api_config_source")
}

// controlClusters are the names of its clusters, and where they stand.
func (g *gateway) controlClusters() (names []string, places []path) {
	source, at := g.controlPlane()
	for i, s := range source.GetGrpcServices() {
		if s.GetEnvoyGrpc() != nil {
			names = append(names, s.GetEnvoyGrpc().GetClusterName())
			places = append(places, at.item("grpc_services", i).with("envoy_grpc"))
		}
	}
	return names, places
}

func xdsUnknown(g *gateway, report report) {
	names, places := g.controlClusters()
	for i, name := range names {
		if g.cluster(name) == nil {
			report(places[i].with("cluster_name"), "the cluster %s is nowhere", quoted(name))
		}
	}
}

func xdsNotDelta(g *gateway, report report) {
	if source, at := g.controlPlane(); source != nil && source.GetApiType() != corev3.ApiConfigSource_DELTA_GRPC {
		report(at.with("api_type"), "api_type is %s", source.GetApiType())
	}
}

func xdsHTTP1(g *gateway, report report) {
	names, _ := g.controlClusters()
	for _, name := range names {
		if c := g.cluster(name); c != nil && !c.http2() {
			report(c.at.with("typed_extension_protocol_options"), "the cluster %s", quoted(name))
		}
	}
}

func xdsKeepalive(g *gateway, report report) {
	names, _ := g.controlClusters()
	for _, name := range names {
		c := g.cluster(name)
		if c == nil || !c.http2() {
			continue
		}
		if c.options.GetExplicitHttpConfig().GetHttp2ProtocolOptions().GetConnectionKeepalive() == nil {
			report(c.optionsAt.with("explicit_http_config", "http2_protocol_options"), "the cluster %s", quoted(name))
		}
	}
}

func xdsBackoff(g *gateway, report report) {
	source, _ := g.controlPlane()
	_, places := g.controlClusters()
	for i, s := range source.GetGrpcServices() {
		if s.GetEnvoyGrpc() != nil && s.GetEnvoyGrpc().GetRetryPolicy().GetRetryBackOff() == nil {
			report(places[i], "the cluster %s has no retry_back_off", quoted(s.GetEnvoyGrpc().GetClusterName()))
		}
	}
}

func noNode(g *gateway, report report) {
	node := g.bootstrap.GetNode()
	if source, _ := g.controlPlane(); source != nil && (node.GetId() == "" || node.GetCluster() == "") {
		report(g.root.with("node"), "node has the id %s and the cluster %s", quoted(node.GetId()), quoted(node.GetCluster()))
	}
}

func samplingZero(g *gateway, report report) {
	for _, m := range g.looked() {
		if s := m.GetTracing().GetRandomSampling(); s != nil && s.GetValue() == 0 {
			report(m.at.with("tracing", "random_sampling"), "random_sampling is 0")
		}
	}
}

func spanDropped(g *gateway, report report) {
	for _, m := range g.processors() {
		if emit := m.processor.GetEmitClientSpan(); emit != nil && !emit.GetValue() && m.GetTracing() != nil {
			report(m.processor.configAt.with("emit_client_span"), "emit_client_span is false, and Envoy traces")
		}
	}
}

func adminOpen(g *gateway, report report) {
	if address := socket(g.bootstrap.GetAdmin().GetAddress()); !loopback(address) {
		report(g.root.with("admin", "address"), "it listens on %s", quoted(address))
	}
}
