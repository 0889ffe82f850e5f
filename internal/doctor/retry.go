package doctor

import (
	"cmp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// retrying is a retry policy of routes to pools.
type retrying struct {
	*routev3.RetryPolicy // nil for none
	at                   path
	whose                string
	// asked: it holds for a route on which warmpath is asked; parts: parts of bodies pass
	// there before the last is there, or may.
	asked, parts bool
}

// holdsFor adds a route that it holds for.
func (p *retrying) holdsFor(r *route) {
	if r.m.processor == nil || r.off {
		return
	}
	m := r.mode()
	p.asked = true
	p.parts = p.parts || streams(m.GetRequestBodyMode()) || m.p.listsPartial()
}

// findRetries finds those of the routes to pools. What a cluster has in its
// HttpProtocolOptions holds in place of the route's, and nothing of the route's is left.
func (g *gateway) findRetries() (policies []*retrying) {
	ofCluster := make(map[*cluster]*retrying)
	of := func(c *cluster) *retrying {
		if ofCluster[c] == nil {
			ofCluster[c] = &retrying{RetryPolicy: c.options.GetRetryPolicy(), at: c.optionsAt.with("retry_policy"), whose: "the cluster " + quoted(c.GetName())}
			policies = append(policies, ofCluster[c])
		}
		return ofCluster[c]
	}
	var byHeader *retrying // whatever their headers name
	for _, r := range g.toPools() {
		own := r.byHeader != "" || len(r.clusters) == 0
		for _, name := range r.clusters {
			if c := g.cluster(name); c != nil && c.options.GetRetryPolicy() != nil {
				of(c).holdsFor(r)
			} else {
				own = true
			}
		}
		if own {
			policies = append(policies, r.retrying())
		}
		if r.byHeader != "" {
			byHeader = cmp.Or(byHeader, new(retrying))
			byHeader.holdsFor(r)
		}
	}
	for _, c := range g.pools() {
		if byHeader != nil && c.options.GetRetryPolicy() != nil {
			p := of(c)
			p.asked, p.parts = p.asked || byHeader.asked, p.parts || byHeader.parts
		}
	}
	return policies
}

// retrying is what the route itself or its virtual host has.
func (r *route) retrying() *retrying {
	own := &retrying{at: r.at.with("route"), whose: r.label()}
	own.holdsFor(r)
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
		if strings.TrimSpace(p.GetRetryOn()) != "" && p.parts == duplicates {
			report(p.at.with("retry_on"), "%s has retry_on: %s", p.whose, quoted(p.GetRetryOn()))
		}
	}
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
	for _, p := range g.retries() {
		if g.setup.Retries && p.asked && !slices.ContainsFunc(p.GetRetryHostPredicate(), isPrevious) {
			report(p.at, "%s has no retry_host_predicate previous_hosts", p.whose)
		}
	}
}
