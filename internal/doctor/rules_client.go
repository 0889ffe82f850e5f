package doctor

import (
	"slices"
	"strings"
)

// clientRules are about what a client could say.
func clientRules() []Rule {
	const source = "SECURITY.md, What a client could try"
	return []Rule{
		{
			ID: "client-steers", Severity: Error, What: "the cluster reads the choice from a header, and a client's own copy is not removed; or a filter writes a client's words to where the choice is read",
			Why: "a client chooses its server whenever warmpath is silent or away", Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?",
			Fix: "read it from metadata, or remove the header in early_header_mutation_extensions; have header_to_metadata and json_to_metadata write elsewhere than x-gateway-destination-endpoint of envoy.lb", check: clientSteers,
		},
		{
			ID: "client-pool", Severity: Error, What: "a route takes its cluster from a header, and a client's own copy is not removed",
			Why: "a client chooses any cluster while warmpath is away", Source: source,
			Fix: "remove the header in early_header_mutation_extensions", check: clientPool,
		},
		{
			ID: "client-headers", Severity: Warning, What: "a client's own headers of Envoy's are not removed",
			Why: "a client switches on retries, whose buffer repeats bodies in a fault, or timeouts of its own", Source: source,
			Fix: "remove them in early_header_mutation_extensions, as the shipped configuration does", check: clientHeaders,
		},
		{
			ID: "steering-removed", Severity: Error, What: "the header that steers is removed on the route, and the cluster reads it",
			Why:    "it is removed before the endpoint is chosen: 6 of 6 requests were not steered",
			Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?",
			Fix:    "take it out of request_headers_to_remove, and remove a client's copy in early_header_mutation_extensions", check: steeringRemoved,
		},
		{
			ID: "choice-leaks", Severity: Note, What: "the header with the choice goes on to the model server",
			Why:    "it tells addresses to whoever logs requests there; the choice travels as metadata",
			Source: "RATIONALE.md, Why is the choice sent as metadata, and not as a header that Envoy reads?", Fix: "request_headers_to_remove: [x-gateway-destination-endpoint]", check: choiceLeaks,
		},
	}
}

// clientsOwn are headers with which a client commands Envoy's router.
var clientsOwn = [...]string{
	"x-envoy-retry-on", "x-envoy-retry-grpc-on", "x-envoy-max-retries", "x-envoy-retriable-status-codes", "x-envoy-retriable-header-names",
	"x-envoy-hedge-on-per-try-timeout", "x-envoy-upstream-rq-timeout-ms", "x-envoy-upstream-rq-per-try-timeout-ms", "x-envoy-upstream-stream-duration-ms",
}

func clientSteers(g *gateway, report report) {
	if g.byMetadata() {
		metadataSteers(g, report)
	}
	if !slices.ContainsFunc(g.pools(), (*cluster).byHeader) {
		return
	}
	for _, m := range g.looked() {
		if len(m.keptEarly(destination)) > 0 {
			report(m.at.with("early_header_mutation_extensions"), "%s of a client's stays", destination)
		}
	}
}

func clientPool(g *gateway, report report) {
	for _, r := range g.toPools() {
		if r.byHeader != "" && len(r.m.keptEarly(strings.ToLower(r.byHeader))) > 0 {
			report(r.byHeaderAt, "%s of a client's stays", quoted(r.byHeader))
		}
	}
}

func clientHeaders(g *gateway, report report) {
	for _, m := range g.looked() {
		if kept := m.keptEarly(clientsOwn[:]...); len(kept) > 0 {
			report(m.at.with("early_header_mutation_extensions"), "of a client's these stay: %s", strings.Join(kept, ", "))
		}
	}
}

func steeringRemoved(g *gateway, report report) {
	for _, r := range g.steered() {
		removed, at := r.removes(destination)
		if removed && slices.ContainsFunc(r.clusters, func(name string) bool { c := g.cluster(name); return c != nil && c.byHeader() }) {
			report(at, "%s is removed on %s", destination, r.label())
		}
	}
}

func choiceLeaks(g *gateway, report report) {
	for _, r := range g.steered() {
		removed, _ := r.removes(destination)
		byHeader := slices.ContainsFunc(r.clusters, func(name string) bool { c := g.cluster(name); return c != nil && c.byHeader() })
		if r.m.processor != nil && !removed && !byHeader {
			report(r.at, "%s is not removed on %s", destination, r.label())
		}
	}
}
