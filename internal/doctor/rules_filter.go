package doctor

import (
	"math"
	"slices"
	"strings"

	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// filterRules are about warmpath's filter and its place in the chain.
func filterRules() []Rule {
	return []Rule{
		{
			ID: "unknown", Severity: Error, What: "something that Envoy 1.40 does not know",
			Why: "Envoy refuses the whole configuration", Source: "envoy --mode validate",
			Fix: "correct its name or value; if your Envoy is newer and takes it, leave it",
		},
		{
			ID: "no-ext-proc", Severity: Error, What: "no ext_proc filter that asks warmpath",
			Why: "nothing is steered: Envoy chooses by itself", Source: "ARCHITECTURE.md, The life of a request",
			Fix: "add the filter that `warmpath envoy --for filter` prints, before the router", check: noExtProc,
		},
		{
			ID: "filter-off", Severity: Warning, What: "the filter is disabled on a route to model servers",
			Why: "requests of that route are not steered and not counted", Source: "SECURITY.md, What a client could try",
			Fix: "take `disabled` out, or send the route to a cluster of its own", check: filterOff,
		},
		{
			ID: "filter-name", Severity: Warning, What: "the filter has the usual name envoy.filters.http.ext_proc",
			Why:    "it collides with the filter that Istio adds for an InferencePool: warmpath is then asked twice a request, or not at all",
			Source: "RATIONALE.md, Why the filter's name `warmpath.ext_proc`?", Fix: "name it warmpath.ext_proc, here and in every typed_per_filter_config", check: filterName,
		},
		{
			ID: "processor-before", Severity: Error, What: "another ext_proc filter, through which bodies pass, stands before warmpath's",
			Why:    "Envoy forwarded 10 of 160 bodies empty or cut, also with warmpath dead",
			Source: "RATIONALE.md, May another ext_proc stand in the chain?", Fix: "move it behind warmpath's filter, or have it read headers only", check: processorBefore,
		},
		{
			ID: "processor-after", Severity: Warning, What: "another ext_proc filter, through which bodies pass, stands behind warmpath's, and retries are on",
			Why:    "requests over HTTP/2 with trailers were sent with their bodies twice, 100 of 100",
			Source: "RATIONALE.md, May another ext_proc stand in the chain?", Fix: "set `retry: {conditions: []}` in warmpath.yaml", check: processorAfter,
		},
		{
			ID: "compressor-after", Severity: Note, What: "responses are compressed before warmpath sees them",
			Why:    "a response with a content-encoding is not inspected: no hit rates",
			Source: "CONFIG.md, inspection", Fix: "put the compressor before warmpath's filter: responses pass the chain backwards", check: compressorAfter,
		},
		{
			ID: "buffer-filter", Severity: Error, What: "a filter that buffers bodies takes less than limits.requestBodyBytes",
			Why:    "what is larger is refused with 413, although warmpath would have let it pass",
			Source: "CONFIG.md, limits", Fix: "raise max_request_bytes above the largest request that you serve; in ext_authz allow_partial_message: true does too", check: bufferFilter,
		},
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
			ID: "no-retries", Severity: Warning, What: "mutation_rules do not let warmpath set x-envoy-retry-on",
			Why:    "nothing is retried: with a dead replica 47 of 50 requests got 503",
			Source: "RATIONALE.md, Why is the route's retry policy without `retry_on`?", Fix: "mutation_rules: {allow_envoy: true}", check: noRetries,
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

func noExtProc(g *gateway, report report) {
	without := g.managers
	if len(g.processors()) > 0 { // of those that send to the same servers too
		without = nil
		for _, m := range g.managers {
			if m.processor == nil && slices.ContainsFunc(m.routes, func(r *route) bool { return slices.ContainsFunc(r.clusters, g.isPoolForSure) }) {
				without = append(without, m)
			}
		}
	}
	for _, m := range without {
		report(m.at.with("http_filters"), "the connection manager %q has no ext_proc filter", m.GetStatPrefix())
	}
	if len(g.managers) == 0 {
		report(path{}, "no HTTP connection manager in it")
	}
}

func filterOff(g *gateway, report report) {
	for _, r := range g.toPools() {
		if r.off {
			report(r.offAt, "%s is disabled for %s", r.m.processor.name, r.label())
		}
	}
}

func (r *route) label() string {
	if r.GetName() != "" {
		return "the route " + quoted(r.GetName())
	}
	to := r.byHeader
	if len(r.clusters) > 0 {
		to = r.clusters[0]
	}
	return "the route to " + quoted(to)
}

func filterName(g *gateway, report report) {
	for _, m := range g.processors() {
		if m.processor.name == usualName {
			report(m.processor.at.with("name"), "the filter is named %s", usualName)
		}
	}
}

// through tells whether bodies of requests pass through an ext_proc filter.
func through(f httpFilter) bool {
	p, ok := f.message.(*extprocv3.ExternalProcessor)
	return ok && p.GetProcessingMode().GetRequestBodyMode() != extprocv3.ProcessingMode_NONE
}

func processorBefore(g *gateway, report report) {
	for _, m := range g.processors() {
		for _, f := range m.filters[:m.processor.index] {
			if through(f) {
				report(f.at, "%s stands before %s", f.name, m.processor.name)
			}
		}
	}
}

func processorAfter(g *gateway, report report) {
	if !g.setup.Retries {
		return
	}
	for _, m := range g.processors() {
		for _, f := range m.filters[m.processor.index+1:] {
			if through(f) {
				report(f.at, "%s stands behind %s", f.name, m.processor.name)
			}
		}
	}
}

func compressorAfter(g *gateway, report report) {
	for _, m := range g.processors() {
		for _, f := range m.filters[m.processor.index+1:] {
			if g.setup.Inspection && strings.HasSuffix(f.kind, ".Compressor") {
				report(f.at, "%s stands behind %s", f.name, m.processor.name)
			}
		}
	}
}

func bufferFilter(g *gateway, report report) {
	for _, m := range g.looked() {
		for _, f := range m.filters {
			least, at := uint32(math.MaxUint32), f.configAt
			switch b := f.message.(type) {
			case *bufferv3.Buffer:
				least = b.GetMaxRequestBytes().GetValue()
			case *authzv3.ExtAuthz:
				if with := b.GetWithRequestBody(); with != nil && !with.GetAllowPartialMessage() {
					least, at = with.GetMaxRequestBytes(), at.with("with_request_body")
				}
			}
			if int64(least) < g.setup.BodyLimit {
				report(at.with("max_request_bytes"), "max_request_bytes of %s is %d, limits.requestBodyBytes %d", f.name, least, g.setup.BodyLimit)
			}
		}
	}
}

func failsClosed(g *gateway, report report) {
	for _, m := range g.processors() {
		if !m.processor.GetFailureModeAllow() {
			report(m.processor.configAt.with("failure_mode_allow"), "failure_mode_allow is false")
		}
	}
	for _, r := range g.steered() {
		if allow := r.override.GetFailureModeAllow(); allow != nil && !allow.GetValue() {
			report(r.overrideAt.with("failure_mode_allow"), "failure_mode_allow is false for %s", r.label())
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
	for _, m := range g.processors() {
		at := m.processor.configAt.with("metadata_options", "receiving_namespaces", "untyped")
		if names := m.processor.GetMetadataOptions().GetReceivingNamespaces().GetUntyped(); g.byMetadata() && !slices.Contains(names, namespace) {
			report(at, "the namespaces are %q", names)
		}
	}
}

func noRetries(g *gateway, report report) {
	for _, m := range g.processors() {
		rules, at := m.processor.GetMutationRules(), m.processor.configAt.with("mutation_rules")
		switch {
		case !g.setup.Retries && !rules.GetDisallowAll().GetValue():
		case rules.GetDisallowAll().GetValue():
			report(at.with("disallow_all"), "disallow_all is set: no header of warmpath's is taken")
		case !rules.GetAllowEnvoy().GetValue():
			report(at.with("allow_envoy"), "allow_envoy is not true")
		}
	}
}

func headersWithheld(g *gateway, report report) {
	needed := []string{"content-length", "content-type", ":path", g.setup.TenantHeader}
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
