package doctor

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// poolRules are about the clusters of model servers.
func poolRules() []Rule {
	const measured, breakers = "DOCTOR.md, What was measured", "RATIONALE.md, Why are the circuit breakers raised?"
	return []Rule{
		{
			ID: "no-override-host", Severity: Error, What: "the cluster does not read warmpath's choice",
			Why: "Envoy chooses by itself: round robin, to cold caches", Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?",
			Fix: "the load_balancing_policy that `warmpath envoy --for filter` prints, or route to warmpath's own cluster", check: noOverrideHost,
		},
		{
			ID: "other-source", Severity: Error, What: "the cluster looks for the choice where warmpath does not put it",
			Why:    "nothing is found there, and Envoy falls back silently",
			Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?", Fix: "override_host_sources: [{metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}}]", check: otherSource,
		},
		{
			ID: "no-fallback", Severity: Error, What: "override_host without fallback_policy",
			Why: "Envoy refuses the cluster", Source: measured, Fix: "a fallback_policy, such as ring_hash with hash_balance_factor: 125", check: noFallback,
		},
		{
			ID: "any-address", Severity: Error, What: "an ORIGINAL_DST cluster that takes its address from a header or from metadata",
			Why: "whoever can send the header reaches any address; and a choice is a list of up to three, which is no address: 503", Source: "CASES.md, Choice and load",
			Fix: "an EDS, STATIC or STRICT_DNS cluster with override_host", check: anyAddress,
		},
		{
			ID: "one-address", Severity: Error, What: "a LOGICAL_DNS cluster of model servers",
			Why: "it has one address at a time; a choice of another is not known, and Envoy falls back silently", Source: "CASES.md, Membership and xDS",
			Fix: "STRICT_DNS, STATIC, or warmpath's own cluster over CDS", check: oneAddress,
		},
		{
			ID: "locality", Severity: Error, What: "common_lb_config balances by locality, or lb_subset_config by subsets, beside a load_balancing_policy",
			Why: "Envoy refuses the cluster and keeps the old one: cannot be combined with partial fields, or with lb_subset_config", Source: measured,
			Fix: "take it out; in Istio localityLbSetting: {enabled: false}. warmpath prefers its zone (`zone`)", check: locality,
		},
		{
			ID: "pool-breakers", Severity: Warning, What: "circuit breakers of the model servers at 1,024 or less",
			Why: "the request above it gets 503, or waits in Envoy where per_host_thresholds limit connections", Source: breakers,
			Fix: "thresholds: [{max_requests: 100000, max_connections: 100000, max_pending_requests: 100000, max_retries: 100000}], the same with priority: HIGH for routes of that, and no per_host_thresholds", check: poolBreakers,
		},
		{
			ID: "retry-breaker", Severity: Warning, What: "max_retries of the circuit breakers is small",
			Why: "Envoy's default is 3: of the requests of a server that dies most do not get to their second home", Source: breakers,
			Fix: "max_retries: 100000 in the thresholds", check: retryBreaker,
		},
		{
			ID: "pool-panic", Severity: Note, What: "healthy_panic_threshold of the model servers is not 0",
			Why: "when most are unhealthy Envoy's own choice sends requests to dead ones", Source: measured,
			Fix: "common_lb_config: {healthy_panic_threshold: {value: 0}}", check: poolPanic,
		},
		{
			ID: "removed-stays", Severity: Warning, What: "active health checks without ignore_health_on_host_removal",
			Why: "a server that was removed stays, and may be chosen, while its check passes", Source: measured,
			Fix: "ignore_health_on_host_removal: true, or no health_checks: warmpath probes", check: removedStays,
		},
		{
			ID: "closing-engine", Severity: Warning, What: "connections to engines that close them without a word are used again",
			Why: "a request meets a closing connection: 503, after 3 and 11 requests with llama.cpp", Source: measured,
			Fix: "cluster.maxRequestsPerConnection: 1 in warmpath.yaml; in a cluster of your own max_requests_per_connection: 1 in its common_http_protocol_options (envoy/cluster.yaml has it as a comment)", check: closingEngine,
		},
		{
			ID: "members-missing", Severity: Warning, What: "warmpath's membership has endpoints that Envoy's cluster has not",
			Why: "a choice of one of them falls back silently to any other", Source: "CASES.md, Membership and xDS",
			Fix: "list the same addresses in both, or take the cluster from warmpath (listen.xds)", check: membersMissing,
		},
		{
			ID: "members-idle", Severity: Warning, What: "Envoy's cluster has endpoints that warmpath's membership has not",
			Why: "nothing is steered to them: they get what Envoy chooses by itself, while warmpath is away", Source: "CASES.md, Membership and xDS",
			Fix: "list the same addresses in both, or take the cluster from warmpath (listen.xds)", check: membersIdle,
		},
		{
			ID: "address-twice", Severity: Warning, What: "an address stands twice in the cluster",
			Why: "Envoy's own choice gives it twice its share, and a retry may fall on it again", Source: measured,
			Fix: "list each address once", check: addressTwice,
		},
	}
}

func noOverrideHost(g *gateway, report report) {
	for _, c := range g.pools() {
		policy, _ := c.overrideHost()
		if _, told := c.addressTold(); policy == nil && !told {
			at, kind := c.at.with("load_balancing_policy"), ""
			switch {
			case c.GetClusterType() != nil:
				at, kind = c.at.with("cluster_type"), ", which is of the type "+quoted(c.GetClusterType().GetName())+","
			case c.GetLoadBalancingPolicy() == nil:
				at = c.at.with("lb_policy")
			}
			report(at, "the cluster %s%s has no override_host", quoted(c.GetName()), kind)
		}
	}
}

func otherSource(g *gateway, report report) {
	for _, c := range g.pools() {
		policy, at := c.overrideHost()
		for i, s := range policy.GetOverrideHostSources() {
			at := at.item("override_host_sources", i)
			if m := s.GetMetadata(); m != nil {
				keys := []string{m.GetKey()}
				for _, segment := range m.GetPath() {
					keys = append(keys, segment.GetKey())
				}
				if !slices.Equal(keys, []string{namespace, destination}) {
					report(at.with("metadata"), "it reads the metadata %q", keys)
				}
			} else if !strings.EqualFold(s.GetHeader(), destination) {
				report(at.with("header"), "it reads the header %s", quoted(s.GetHeader()))
			}
		}
	}
}

func noFallback(g *gateway, report report) {
	for _, c := range g.pools() {
		if policy, at := c.overrideHost(); policy != nil && policy.GetFallbackPolicy() == nil {
			report(at, "the cluster %s has no fallback_policy", quoted(c.GetName()))
		}
	}
}

// addressTold tells whether an ORIGINAL_DST cluster takes its address from what a request
// has, and where that is said.
func (c *cluster) addressTold() (path, bool) {
	config, at := c.GetOriginalDstLbConfig(), c.at.with("original_dst_lb_config")
	if config.GetUseHttpHeader() {
		return at.with("use_http_header"), true
	}
	return at.with("metadata_key"), config.GetMetadataKey() != nil
}

func anyAddress(g *gateway, report report) {
	for _, c := range g.pools() {
		if at, told := c.addressTold(); told {
			report(at, "the cluster %s", quoted(c.GetName()))
		}
	}
}

func oneAddress(g *gateway, report report) {
	for _, c := range g.pools() {
		if c.GetType() == clusterv3.Cluster_LOGICAL_DNS {
			report(c.at.with("type"), "the cluster %s is LOGICAL_DNS", quoted(c.GetName()))
		}
	}
}

func locality(g *gateway, report report) {
	for _, c := range g.pools() {
		at := c.at.with("common_lb_config")
		switch {
		case c.GetLoadBalancingPolicy() == nil:
		case c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil:
			report(at.with("locality_weighted_lb_config"), "locality_weighted_lb_config")
		case c.GetCommonLbConfig().GetZoneAwareLbConfig() != nil:
			report(at.with("zone_aware_lb_config"), "zone_aware_lb_config")
		case c.GetLbSubsetConfig() != nil:
			report(c.at.with("lb_subset_config"), "lb_subset_config")
		}
	}
}

// aggregate tells whether the cluster only hands requests on to others, whose limits hold.
func (c *cluster) aggregate() bool {
	return strings.HasSuffix(c.GetClusterType().GetTypedConfig().GetTypeUrl(), ".clusters.aggregate.v3.ClusterConfig")
}

// panics tells whether the cluster's choice may fall on unhealthy hosts.
func (c *cluster) panics() bool {
	threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold()
	return threshold == nil || threshold.GetValue() > 0
}

func poolPanic(g *gateway, report report) {
	for _, c := range g.pools() {
		if c.panics() && !c.aggregate() {
			report(c.at.with("common_lb_config", "healthy_panic_threshold"), "of the cluster %s", quoted(c.GetName()))
		}
	}
}

func removedStays(g *gateway, report report) {
	for _, c := range g.pools() {
		if len(c.GetHealthChecks()) > 0 && !c.GetIgnoreHealthOnHostRemoval() && c.GetType() != clusterv3.Cluster_STATIC {
			report(c.at.with("health_checks"), "the cluster %s", quoted(c.GetName()))
		}
	}
}

// maxStreamDuration is after what time the cluster ends a stream, nil for never.
func (c *cluster) maxStreamDuration() (*durationpb.Duration, path) {
	//lint:ignore SA1019 older configurations have it
	if t := c.GetCommonHttpProtocolOptions().GetMaxStreamDuration(); t != nil {
		return t, c.at.with("common_http_protocol_options", "max_stream_duration")
	}
	return c.options.GetCommonHttpProtocolOptions().GetMaxStreamDuration(), c.optionsAt.with("common_http_protocol_options", "max_stream_duration")
}

func closingEngine(g *gateway, report report) {
	if !g.setup.ClosingEngine {
		return
	}
	for _, c := range g.pools() {
		n := c.options.GetCommonHttpProtocolOptions().GetMaxRequestsPerConnection().GetValue()
		//lint:ignore SA1019 older configurations have it
		if n != 1 && c.GetMaxRequestsPerConnection().GetValue() != 1 {
			report(c.optionsAt.with("common_http_protocol_options", "max_requests_per_connection"), "the cluster %s", quoted(c.GetName()))
		}
	}
}
