package doctor

import (
	"slices"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// settingRules are about the settings of warmpath's filter.
func settingRules() []Rule {
	return []Rule{
		{
			ID: "fails-closed", Severity: Error, What: "failure_mode_allow is not true",
			Why:    "while warmpath is away every request gets 500, and a restart cuts the streams that run",
			Source: "RATIONALE.md, What if warmpath is slow, frozen or gone?", Fix: "failure_mode_allow: true", check: failsClosed,
		},
		{
			ID: "observes-only", Severity: Error, What: "observability_mode",
			Why: "Envoy does not wait for answers, so nothing is steered", Source: "ARCHITECTURE.md, The life of a request",
			Fix: "take observability_mode out", check: observesOnly,
		},
		{
			ID: "message-timeout", Severity: Warning, What: "message_timeout is unset, below 100 ms or above 1 s",
			Why:    "it is what each request waits for a warmpath that hangs; too short, it gives up while warmpath is only busy, and the response runs on uncounted",
			Source: "RATIONALE.md, What if warmpath is slow, frozen or gone?", Fix: "message_timeout: 0.25s", check: messageTimeout,
		},
		{
			ID: "no-metadata", Severity: Error, What: "metadata_options.receiving_namespaces.untyped lacks envoy.lb",
			Why:    "Envoy drops the choice without a word and chooses by itself",
			Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?", Fix: "metadata_options: {receiving_namespaces: {untyped: [envoy.lb, warmpath]}}", check: noMetadata,
		},
		{
			ID: "headers-withheld", Severity: Warning, What: "forward_rules keep headers from warmpath that it reads",
			Why:    "without content-length and content-type no body is asked for; without the tenant's header tenants share keys",
			Source: "CONFIG.md, limits", Fix: "take forward_rules out", check: headersWithheld,
		},
		{
			ID: "served-unseen", Severity: Warning, What: "response_attributes lack upstream.address",
			Why:    "Envoy falls back silently; warmpath then does not see that another endpoint served, and counts at the wrong one",
			Source: "RATIONALE.md, Why a list of up to three, and not one replica?", Fix: "response_attributes: [upstream.address, upstream.request_attempt_count]", check: servedUnseen,
		},
		{
			ID: "route-kept", Severity: Warning, What: "Envoy may not choose the route again when warmpath has named a pool",
			Why:    "requests of further pools go to the default pool's servers, which have another model",
			Source: "CONFIG.md, pools", Fix: "take disable_clear_route_cache and route_cache_action out", check: routeKept,
		},
		{
			ID: "smuggling", Severity: Error, What: "allow_content_length_header with a streamed body mode",
			Why:    "a client's trailers had the copy of its body read as a second request, 40 of 40",
			Source: "DOCTOR.md, What was measured", Fix: "take allow_content_length_header out", check: smuggling,
		},
	}
}

func failsClosed(g *gateway, report report) {
	for _, c := range g.processorConfigs() {
		switch {
		case c.failureAllow:
		case c.failureNear:
			report(c.failureAt, "failure_mode_allow is false for %s", c.r.label())
		default:
			report(c.failureAt, "failure_mode_allow is false")
		}
	}
}

func observesOnly(g *gateway, report report) {
	for _, m := range g.processors() {
		if m.processor.GetObservabilityMode() {
			report(m.processor.configAt.with("observability_mode"), "observability_mode is on")
		}
	}
}

func messageTimeout(g *gateway, report report) {
	for _, m := range g.processors() {
		t := m.processor.GetMessageTimeout()
		if d := t.AsDuration().Milliseconds(); t == nil || d < 100 || d > 1000 {
			report(m.processor.configAt.with("message_timeout"), "message_timeout is %s", shown(t, "unset, which is 0.2s"))
		}
	}
}

func noMetadata(g *gateway, report report) {
	if !g.byMetadata() {
		return
	}
	for _, c := range g.processorConfigs() {
		if !slices.Contains(c.namespaces, namespace) {
			report(c.namespacesAt, "the namespaces are %q", c.namespaces)
		}
	}
}

func headersWithheld(g *gateway, report report) {
	needed := []string{"content-length", "content-type", ":path", strings.ToLower(g.setup.TenantHeader)}
	for _, m := range g.processors() {
		rules, at := m.processor.GetForwardRules(), m.processor.configAt.with("forward_rules")
		if rules == nil {
			continue
		}
		var withheld []string
		for _, name := range needed {
			allowed := rules.GetAllowedHeaders() == nil || matches(rules.GetAllowedHeaders(), name)
			if !allowed || matches(rules.GetDisallowedHeaders(), name) {
				withheld = append(withheld, name)
			}
		}
		if len(withheld) > 0 {
			report(at, "warmpath does not get %s", strings.Join(withheld, ", "))
		}
	}
}

func servedUnseen(g *gateway, report report) {
	for _, m := range g.processors() {
		if !slices.Contains(m.processor.GetResponseAttributes(), "upstream.address") {
			report(m.processor.configAt.with("response_attributes"), "response_attributes are %q", m.processor.GetResponseAttributes())
		}
	}
}

func routeKept(g *gateway, report report) {
	for _, m := range g.processors() {
		p, byHeader := m.processor, slices.ContainsFunc(m.routes, func(r *route) bool { return r.byHeader != "" })
		if !byHeader {
			continue
		}
		if p.GetDisableClearRouteCache() {
			report(p.configAt.with("disable_clear_route_cache"), "disable_clear_route_cache is set")
		}
		if p.GetRouteCacheAction() == extprocv3.ExternalProcessor_RETAIN {
			report(p.configAt.with("route_cache_action"), "route_cache_action is RETAIN")
		}
	}
}

func smuggling(g *gateway, report report) {
	for _, m := range g.modes() {
		if m.p.GetAllowContentLengthHeader() && streams(m.GetRequestBodyMode()) {
			report(m.p.configAt.with("allow_content_length_header"), "allow_content_length_header with request_body_mode %s", m.GetRequestBodyMode())
		}
	}
}
