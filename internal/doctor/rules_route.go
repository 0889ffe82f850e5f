package doctor

import (
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// routeRules are about the routes to model servers.
func routeRules() []Rule {
	const static = "RATIONALE.md, Why is the route's retry policy without `retry_on`?"
	return []Rule{
		{
			ID: "route-timeout", Severity: Error, What: "a route ends answers after less than 10 minutes",
			Why: "Envoy's default is 15 s, and a streamed answer takes as long as it takes: it is cut", Source: "DOCTOR.md, What was measured",
			Fix: "timeout: 0s on the route, and no max_stream_duration (on the cluster neither) or per_try_timeout", check: routeTimeout,
		},
		{
			ID: "idle-timeout", Severity: Warning, What: "a silent stream is ended after less than 10 minutes",
			Why: "a long prompt may wait in an engine's queue for minutes before its first byte; Envoy's default is 5 minutes", Source: "DOCTOR.md, What was measured",
			Fix: "stream_idle_timeout: 3600s, no idle_timeout on the route and no per_try_idle_timeout", check: idleTimeout,
		},
		{
			ID: "request-timeout", Severity: Warning, What: "request_timeout of less than a minute",
			Why: "an upload that takes longer gets 408: 4 MiB take 34 s at a megabit a second", Source: "CONFIG.md, limits",
			Fix: "request_timeout: 300s", check: requestTimeout,
		},
		{
			ID: "body-limit", Severity: Error, What: "Envoy keeps less of a body than limits.requestBodyBytes",
			Why: "warmpath asks for a body that does not fit, and Envoy answers 413", Source: "CONFIG.md, limits",
			Fix: "request_body_buffer_limit on the route equal to limits.requestBodyBytes; without it the listener's per_connection_buffer_limit_bytes holds, 1 MiB by default", check: bodyLimit,
		},
		{
			ID: "body-limit-unused", Severity: Note, What: "Envoy would keep more of a body than limits.requestBodyBytes",
			Why: "bodies between the two are routed by load although they would fit", Source: "CONFIG.md, limits",
			Fix: "make the two equal", check: bodyLimitUnused,
		},
		{
			ID: "retry-duplicates", Severity: Error, What: "a retry_on of the route's or the cluster's own, with a body mode in which parts of a body pass before its end",
			Why:    "when warmpath dies in mid-upload Envoy sends parts of the body twice, surplus bytes that a client can choose: request smuggling",
			Source: static, Fix: "take retry_on out: warmpath switches retries on per request. In Istio: retries: {attempts: 0} in the VirtualService", check: retryDuplicates,
		},
		{
			ID: "retry-static", Severity: Warning, What: "a retry_on of the route's or the cluster's own",
			Why:    "Envoy retries requests that warmpath did not decide, and with 5xx whole generations; with another body mode it would duplicate bodies",
			Source: static, Fix: "take retry_on out: warmpath switches retries on per request. In Istio: retries: {attempts: 0} in the VirtualService", check: retryStatic,
		},
		{
			ID: "same-host-retried", Severity: Note, What: "the retry policy has no previous_hosts predicate",
			Why: "after the last named endpoint Envoy's own choice may fall on one that has just failed", Source: "DOCTOR.md, What was measured",
			Fix: "the retry_policy of the shipped route, without retry_on, and none in a cluster's HttpProtocolOptions", check: sameHostRetried,
		},
		{
			ID: "no-hash", Severity: Note, What: "no hash_policy, and the fallback hashes",
			Why: "while warmpath is away tenants are spread at random, to cold caches", Source: "RATIONALE.md, What if warmpath is slow, frozen or gone?",
			Fix: "hash_policy: [{header: {header_name: …}}] with tenant.header", check: noHash,
		},
		{
			ID: "other-tenant-header", Severity: Note, What: "the hash_policy has another header than tenant.header",
			Why: "while warmpath is away tenants go elsewhere than a choice by their own header would send them", Source: "CONFIG.md, tenant",
			Fix: "name tenant.header there", check: otherTenantHeader,
		},
		{
			ID: "cluster-unknown", Severity: Error, What: "a route goes to a cluster that is nowhere",
			Why: "requests get 503, or Envoy refuses to start", Source: "DOCTOR.md, What was measured",
			Fix: "add the cluster, or dynamic_resources with cds_config, from which warmpath's comes", check: clusterUnknown,
		},
		{
			ID: "clusters-validated", Severity: Error, What: "a route goes to a cluster that comes over CDS, and validate_clusters is not false",
			Why: "Envoy refuses to start: it does not know the cluster yet", Source: "DOCTOR.md, What was measured",
			Fix: "validate_clusters: false in the route_config", check: clustersValidated,
		},
	}
}

func routeTimeout(g *gateway, report report) {
	for _, r := range g.toPools() {
		at := r.at.with("route")
		if t := seconds(r.action.GetTimeout(), defaultRoute); ends(t) {
			report(at.with("timeout"), "%s ends answers after %s", r.label(), shown(r.action.GetTimeout(), "15s, the default"))
		}
		if t := r.action.GetMaxStreamDuration().GetMaxStreamDuration(); ends(seconds(t, 0)) {
			report(at.with("max_stream_duration"), "%s ends answers after %s", r.label(), shown(t, ""))
		}
	}
	for _, p := range g.retries() {
		if t := p.GetPerTryTimeout(); ends(seconds(t, 0)) {
			report(p.at.with("per_try_timeout"), "%s gives up a try after %s", p.whose, shown(t, ""))
		}
	}
	for _, c := range g.pools() {
		if t, at := c.maxStreamDuration(); ends(seconds(t, 0)) {
			report(at, "the cluster %s ends answers after %s", quoted(c.GetName()), shown(t, ""))
		}
	}
	for _, m := range g.looked() {
		if t := m.GetCommonHttpProtocolOptions().GetMaxStreamDuration(); ends(seconds(t, 0)) {
			report(m.at.with("common_http_protocol_options", "max_stream_duration"), "every stream ends after %s", shown(t, ""))
		}
	}
}

func idleTimeout(g *gateway, report report) {
	for _, p := range g.retries() {
		if t := p.GetPerTryIdleTimeout(); ends(seconds(t, 0)) {
			report(p.at.with("per_try_idle_timeout"), "%s gives up a silent try after %s", p.whose, shown(t, ""))
		}
	}
	for _, r := range g.toPools() {
		if t := r.action.GetIdleTimeout(); t != nil {
			if ends(t.AsDuration()) {
				report(r.at.with("route", "idle_timeout"), "%s ends silent streams after %s", r.label(), t.AsDuration())
			}
			continue
		}
		if t := r.m.GetStreamIdleTimeout(); ends(seconds(t, defaultIdle)) {
			report(r.m.at.with("stream_idle_timeout"), "silent streams end after %s", shown(t, "5m0s, the default"))
		}
	}
}

func requestTimeout(g *gateway, report report) {
	for _, m := range g.looked() {
		if t := m.GetRequestTimeout().AsDuration(); t > 0 && t < time.Minute {
			report(m.at.with("request_timeout"), "uploads end after %s", t)
		}
	}
}

// read are the routes whose bodies warmpath may ask for, or might if it were there.
func (g *gateway) read() (routes []*route) {
	for _, r := range g.steered() {
		if r.m.processor == nil || r.mode().buffers() {
			routes = append(routes, r)
		}
	}
	return routes
}

func bodyLimit(g *gateway, report report) {
	for _, r := range g.read() {
		if limit, at := r.bodyLimit(); limit < uint64(g.setup.BodyLimit) {
			report(at, "%s keeps %d bytes, limits.requestBodyBytes is %d", r.label(), limit, g.setup.BodyLimit)
		}
	}
}

func bodyLimitUnused(g *gateway, report report) {
	for _, r := range g.read() {
		if limit, at := r.bodyLimit(); r.m.processor != nil && g.setup.Known && limit > uint64(g.setup.BodyLimit) {
			report(at, "%s keeps %d bytes, limits.requestBodyBytes is %d", r.label(), limit, g.setup.BodyLimit)
		}
	}
}

// hashed are the headers that a hash policy names.
func hashed(policy []*routev3.RouteAction_HashPolicy) (headers []string) {
	for _, h := range policy {
		if name := h.GetHeader().GetHeaderName(); name != "" {
			headers = append(headers, name)
		}
	}
	return headers
}

// hashing tells whether the fallback of a route's cluster hashes by what the route says, as
// far as is known. What a cluster has in its HttpProtocolOptions holds in its place.
func (g *gateway) hashing(r *route) bool {
	if r.byHeader != "" {
		return true
	}
	return slices.ContainsFunc(r.clusters, func(name string) bool {
		c := g.cluster(name)
		policy, _ := c.overrideHost()
		switch {
		case c == nil: // comes from warmpath
			return true
		case len(c.options.GetHashPolicy()) > 0:
			return false
		}
		for _, p := range policy.GetFallbackPolicy().GetPolicies() {
			url := p.GetTypedExtensionConfig().GetTypedConfig().GetTypeUrl()
			if strings.HasSuffix(url, ".RingHash") || strings.HasSuffix(url, ".Maglev") {
				return true
			}
		}
		return false
	})
}

func noHash(g *gateway, report report) {
	for _, r := range g.steered() {
		if r.m.processor != nil && len(r.action.GetHashPolicy()) == 0 && g.hashing(r) {
			report(r.at.with("route", "hash_policy"), "%s has no hash_policy", r.label())
		}
	}
}

func otherTenantHeader(g *gateway, report report) {
	judge := func(at path, whose string, policy []*routev3.RouteAction_HashPolicy) {
		if names := hashed(policy); len(names) > 0 && !has(names, g.setup.TenantHeader) {
			report(at, "%s hashes %q, tenant.header is %s", whose, names, g.setup.TenantHeader)
		}
	}
	for _, r := range g.steered() {
		if r.m.processor == nil {
			continue
		}
		judge(r.at.with("route", "hash_policy"), r.label(), r.action.GetHashPolicy())
		for _, name := range r.clusters {
			if c := g.cluster(name); c != nil {
				judge(c.optionsAt.with("hash_policy"), "the cluster "+quoted(name), c.options.GetHashPolicy())
			}
		}
	}
}

func clusterUnknown(g *gateway, report report) {
	for _, m := range g.looked() {
		for _, r := range m.routes {
			for _, name := range r.clusters {
				if g.cluster(name) == nil && (!g.overCDS() || g.dump) {
					report(r.at.with("route", "cluster"), "%s goes to the cluster %s, which is nowhere", r.label(), quoted(name))
				}
			}
		}
	}
}

func clustersValidated(g *gateway, report report) {
	for _, m := range g.looked() {
		validated := m.routeConfig.GetValidateClusters()
		if m.GetRds() != nil || validated != nil && !validated.GetValue() {
			continue
		}
		for _, r := range m.routes {
			for _, name := range r.clusters {
				if c := g.cluster(name); !g.dump && c == nil && g.overCDS() {
					report(m.routeConfigAt.with("validate_clusters"), "%s goes to the cluster %s, which comes over CDS", r.label(), quoted(name))
				}
			}
		}
	}
}
