package doctor

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// extProcRules are about the cluster in which warmpath is asked.
func extProcRules() []Rule {
	const away = "RATIONALE.md, What if warmpath is slow, frozen or gone?"
	return []Rule{
		{
			ID: "ext-proc-unknown", Severity: Error, What: "the filter names a cluster that is nowhere",
			Why: "warmpath is never asked, and --mode validate does not see it", Source: "DOCTOR.md, What was measured",
			Fix: "add the cluster, or correct its name in grpc_service", check: extProcUnknown,
		},
		{
			ID: "ext-proc-http1", Severity: Error, What: "the cluster of warmpath does not speak HTTP/2",
			Why: "gRPC needs it: warmpath is never asked", Source: "DOCTOR.md, What was measured",
			Fix: "http2_protocol_options in its typed_extension_protocol_options; in Kubernetes with Istio a port named grpc", check: extProcHTTP1,
		},
		{
			ID: "ext-proc-breakers", Severity: Warning, What: "circuit breakers of warmpath's cluster at 1,024 or less",
			Why: "one stream is open for each response in progress: of 1,300 at once 276 were not steered", Source: "RATIONALE.md, Why are the circuit breakers raised?",
			Fix: "thresholds: [{max_requests: 100000, max_connections: 100000, max_pending_requests: 100000}], and no per_host_thresholds", check: extProcBreakers,
		},
		{
			ID: "ext-proc-health", Severity: Warning, What: "no gRPC health check of warmpath, or one that takes more than 5 s to notice",
			Why: "a frozen warmpath costs message_timeout on every request; neither a TCP check nor outlier detection helped", Source: away,
			Fix: "health_checks: [{timeout: 0.3s, interval: 0.5s, no_traffic_interval: 0.5s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {}}]", check: extProcHealth,
		},
		{
			ID: "ext-proc-service", Severity: Error, What: "the gRPC health check asks for a service that warmpath does not know",
			Why: "warmpath is never healthy for Envoy, and never asked", Source: "DOCTOR.md, What was measured",
			Fix: "grpc_health_check: {}", check: extProcService,
		},
		{
			ID: "ext-proc-panic", Severity: Warning, What: "healthy_panic_threshold of warmpath's cluster is not 0",
			Why: "a single warmpath that is unhealthy is asked all the same: the health check is in vain", Source: away,
			Fix: "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s}", check: extProcPanic,
		},
		{
			ID: "merge-window", Severity: Note, What: "update_merge_window of warmpath's cluster is not 0",
			Why: "Envoy gathers changes of its health for up to a second", Source: away,
			Fix: "common_lb_config: {update_merge_window: 0s}", check: mergeWindow,
		},
		{
			ID: "ext-proc-ends", Severity: Error, What: "a max_stream_duration of less than 10 minutes at warmpath's cluster",
			Why: "a request's stream ends while its response runs, and so does the count: no bound holds", Source: "DOCTOR.md, What was measured",
			Fix: "no max_stream_duration there", check: extProcEnds,
		},
	}
}

func extProcUnknown(g *gateway, report report) {
	for _, c := range g.processorConfigs() {
		name := c.cluster()
		switch {
		case c.service.GetGoogleGrpc() != nil:
		case name == "":
			report(c.serviceAt, "no grpc_service with envoy_grpc")
		case g.cluster(name) == nil && (g.dump || !g.overCDS() || strings.HasPrefix(name, "warmpath")):
			report(c.serviceAt.with("envoy_grpc", "cluster_name"), "the cluster %s is nowhere", quoted(name))
		}
	}
}

// http2 tells whether the cluster speaks it without being asked.
func (c *cluster) http2() bool {
	switch o := c.options.GetUpstreamProtocolOptions().(type) {
	case *upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_:
		return o.ExplicitHttpConfig.GetHttp2ProtocolOptions() != nil
	case *upstreamv3.HttpProtocolOptions_AutoConfig:
		return c.GetTransportSocket() != nil
	case *upstreamv3.HttpProtocolOptions_UseDownstreamProtocolConfig:
		return true
	default:
		//lint:ignore SA1019 older configurations have it
		return c.GetHttp2ProtocolOptions() != nil
	}
}

func extProcHTTP1(g *gateway, report report) {
	for _, c := range g.extProcs() {
		if !c.http2() {
			report(c.at.with("typed_extension_protocol_options"), "the cluster %s", quoted(c.GetName()))
		}
	}
}

func extProcBreakers(g *gateway, report report) {
	for _, c := range g.extProcs() {
		c.breakers(corev3.RoutingPriority_DEFAULT, report)
	}
}

func extProcHealth(g *gateway, report report) {
	for _, c := range g.extProcs() {
		grpc := slices.IndexFunc(c.GetHealthChecks(), isGRPC)
		if grpc < 0 {
			report(c.at.with("health_checks"), "the cluster %s has no grpc_health_check", quoted(c.GetName()))
			continue
		}
		h := c.GetHealthChecks()[grpc]
		if t := float64(h.GetUnhealthyThreshold().GetValue()) * h.GetInterval().AsDuration().Seconds(); t > 5 {
			report(c.at.item("health_checks", grpc), "the cluster %s: %d checks, one every %s", quoted(c.GetName()), h.GetUnhealthyThreshold().GetValue(), h.GetInterval().AsDuration())
		}
	}
}

func isGRPC(h *corev3.HealthCheck) bool { return h.GetGrpcHealthCheck() != nil }

func extProcService(g *gateway, report report) {
	for _, c := range g.extProcs() {
		for i, h := range c.GetHealthChecks() {
			if name := h.GetGrpcHealthCheck().GetServiceName(); name != "" && name != "envoy.service.ext_proc.v3.ExternalProcessor" {
				report(c.at.item("health_checks", i).with("grpc_health_check", "service_name"), "the cluster %s asks for %s", quoted(c.GetName()), quoted(name))
			}
		}
	}
}

func extProcPanic(g *gateway, report report) {
	for _, c := range g.extProcs() {
		if c.panics() {
			report(c.at.with("common_lb_config", "healthy_panic_threshold"), "of the cluster %s", quoted(c.GetName()))
		}
	}
}

func mergeWindow(g *gateway, report report) {
	for _, c := range g.extProcs() {
		if w := c.GetCommonLbConfig().GetUpdateMergeWindow(); w == nil || w.AsDuration() > 0 {
			report(c.at.with("common_lb_config", "update_merge_window"), "of the cluster %s it is %s", quoted(c.GetName()), shown(w, "unset, which is 1s"))
		}
	}
}

func extProcEnds(g *gateway, report report) {
	for _, c := range g.extProcs() {
		if t, at := c.maxStreamDuration(); ends(seconds(t, 0)) {
			report(at, "the cluster %s ends streams after %s", quoted(c.GetName()), shown(t, ""))
		}
	}
}
