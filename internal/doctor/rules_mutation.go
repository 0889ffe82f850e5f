package doctor

import (
	"slices"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
)

// mutationRules are about what warmpath may set in a request, which the filter's
// mutation_rules say.
func mutationRules() []Rule {
	return []Rule{
		{
			ID: "mutations-fail", Severity: Error, What: "mutation_rules refuse a header that warmpath sets, and disallow_is_error is set",
			Why: "Envoy answers 500 to every request that warmpath decides on, 24 of 24", Source: "DOCTOR.md, What was measured",
			Fix: "mutation_rules: {allow_envoy: true}", check: mutationsFail,
		},
		{
			ID: "steering-refused", Severity: Error, What: "mutation_rules do not let warmpath set the header that names the endpoint or the pool, and Envoy goes by it",
			Why:    "Envoy leaves the header out without a word and chooses by itself",
			Source: "DOCTOR.md, What was measured", Fix: "mutation_rules: {allow_envoy: true}", check: silentlyRefused((*gateway).steering),
		},
		{
			ID: "no-retries", Severity: Warning, What: "mutation_rules do not let warmpath set x-envoy-retry-on",
			Why:    "nothing is retried: with a dead replica 47 of 50 requests got 503",
			Source: "RATIONALE.md, Why is the route's retry policy without `retry_on`?", Fix: "mutation_rules: {allow_envoy: true}", check: silentlyRefused((*gateway).retryHeaders),
		},
	}
}

// Headers by which warmpath switches retries on, as extproc has them.
var retryHeaders = [...]string{"x-envoy-retry-on", "x-envoy-max-retries"}

// refusal is the field of the rules that keeps a header from being set, "" if none does:
// one expression overrules the other, and both the rest.
func refusal(rules *mutationv3.HeaderMutationRules, header string) string {
	switch {
	case fits(rules.GetDisallowExpression(), header):
		return "disallow_expression"
	case fits(rules.GetAllowExpression(), header):
		return ""
	case rules.GetDisallowAll().GetValue():
		return "disallow_all"
	case !rules.GetAllowEnvoy().GetValue() && strings.HasPrefix(header, "x-envoy-"):
		return "allow_envoy"
	default:
		return ""
	}
}

// eachRefused calls for every filter of warmpath's and those of the headers that it does
// not let warmpath set, with where that stands.
func (g *gateway) eachRefused(headers []string, do func(p *processor, refused string, at path)) {
	for _, m := range g.processors() {
		rules := m.processor.GetMutationRules()
		for _, h := range headers {
			if field := refusal(rules, h); field != "" {
				do(m.processor, h, m.processor.configAt.with("mutation_rules", field))
			}
		}
	}
}

// steering are the headers by which Envoy finds the endpoint or the pool.
func (g *gateway) steering() (headers []string) {
	if slices.ContainsFunc(g.pools(), (*cluster).byHeader) {
		headers = append(headers, destination)
	}
	if slices.ContainsFunc(g.steered(), func(r *route) bool { return strings.EqualFold(r.byHeader, poolHeader) }) {
		headers = append(headers, poolHeader)
	}
	return headers
}

// retryHeaders are those that switch retries on.
func (g *gateway) retryHeaders() []string {
	if !g.setup.Retries {
		return nil
	}
	return retryHeaders[:]
}

func mutationsFail(g *gateway, report report) {
	all := append(append([]string{destination}, g.steering()...), g.retryHeaders()...)
	g.eachRefused(all, func(p *processor, refused string, at path) {
		if p.GetMutationRules().GetDisallowIsError().GetValue() {
			report(at, "%s is refused, and disallow_is_error is set", refused)
		}
	})
}

// silentlyRefused reports those of the headers that are left out without an error.
func silentlyRefused(headers func(*gateway) []string) func(*gateway, report) {
	return func(g *gateway, report report) {
		g.eachRefused(headers(g), func(p *processor, refused string, at path) {
			if !p.GetMutationRules().GetDisallowIsError().GetValue() {
				report(at, "%s is refused", refused)
			}
		})
	}
}
