package doctor

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// retrying is a retry policy and the routes that it holds for.
type retrying struct {
	*routev3.RetryPolicy // nil for none
	at                   path
	whose                string
	routes               []*route
}

// findRetries finds those of the routes to pools. What a cluster has in its
// HttpProtocolOptions holds in place of the route's, and nothing of the route's is left.
func (g *gateway) findRetries() (policies []*retrying) {
	ofCluster := make(map[*cluster]*retrying)
	add := func(c *cluster, r *route) {
		if ofCluster[c] == nil {
			ofCluster[c] = &retrying{c.options.GetRetryPolicy(), c.optionsAt.with("retry_policy"), "the cluster " + quoted(c.GetName()), nil}
			policies = append(policies, ofCluster[c])
		}
		ofCluster[c].routes = append(ofCluster[c].routes, r)
	}
	var byHeader []*route
	for _, r := range g.toPools() {
		own := r.byHeader != "" || len(r.clusters) == 0
		for _, name := range r.clusters {
			if c := g.cluster(name); c != nil && c.options.GetRetryPolicy() != nil {
				add(c, r)
			} else {
				own = true
			}
		}
		if own {
			policies = append(policies, r.retrying())
		}
		if r.byHeader != "" {
			byHeader = append(byHeader, r)
		}
	}
	for _, c := range g.pools() { // those that only a header names
		if len(byHeader) > 0 && c.options.GetRetryPolicy() != nil && ofCluster[c] == nil {
			add(c, byHeader[0])
			ofCluster[c].routes = byHeader
		}
	}
	return policies
}

// retrying is what the route itself or its virtual host has.
func (r *route) retrying() *retrying {
	own := &retrying{nil, r.at.with("route"), r.label(), []*route{r}}
	if p := r.action.GetRetryPolicy(); p != nil {
		own.RetryPolicy, own.at = p, r.at.with("route", "retry_policy")
	} else if p := r.host.GetRetryPolicy(); p != nil {
		own.RetryPolicy, own.at = p, r.hostAt.with("retry_policy")
	}
	return own
}

// staticRetries reports the policies with a retry_on of their own by which bodies may, or
// may not, be duplicated.
func staticRetries(g *gateway, report report, duplicates bool) {
	for _, p := range g.retries() {
		if strings.TrimSpace(p.GetRetryOn()) != "" && slices.ContainsFunc(p.routes, (*route).passesParts) == duplicates {
			report(p.at.with("retry_on"), "%s has retry_on: %s", p.whose, quoted(p.GetRetryOn()))
		}
	}
}

// passesParts tells whether parts of bodies pass before the last is there, or may.
func (r *route) passesParts() bool {
	if r.m.processor == nil || r.off {
		return false
	}
	m := r.mode()
	return streams(m.GetRequestBodyMode()) || m.p.listsPartial()
}

// listsPartial tells whether somebody has allowed a mode in which parts of bodies pass.
func (p *processor) listsPartial() bool {
	return p.GetAllowModeOverride() && slices.ContainsFunc(p.GetAllowedOverrideModes(), func(m *extprocv3.ProcessingMode) bool { return streams(m.GetRequestBodyMode()) })
}

func retryDuplicates(g *gateway, report report) { staticRetries(g, report, true) }

func retryStatic(g *gateway, report report) { staticRetries(g, report, false) }

func sameHostRetried(g *gateway, report report) {
	isPrevious := func(p *routev3.RetryPolicy_RetryHostPredicate) bool {
		return strings.HasSuffix(p.GetTypedConfig().GetTypeUrl(), ".PreviousHostsPredicate")
	}
	steered := func(r *route) bool { return r.m.processor != nil && !r.off }
	for _, p := range g.retries() {
		if g.setup.Retries && slices.ContainsFunc(p.routes, steered) && !slices.ContainsFunc(p.GetRetryHostPredicate(), isPrevious) {
			report(p.at, "%s has no retry_host_predicate previous_hosts", p.whose)
		}
	}
}
