package doctor

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// copyRules are about requests that model servers answer more than once.
func copyRules() []Rule {
	const documented = "DOCTOR.md, What was measured"
	return []Rule{
		{
			ID: "hedged", Severity: Warning, What: "a hedge_policy with hedge_on_per_try_timeout",
			Why: "a try that takes longer than per_try_timeout goes on while another one starts: whole generations twice, and only one is counted", Source: documented,
			Fix: "take hedge_policy out", check: hedged,
		},
		{
			ID: "mirrored", Severity: Warning, What: "requests are mirrored to model servers",
			Why: "every generation is made twice, and the copies are not counted", Source: documented,
			Fix: "take request_mirror_policies out, or mirror to a cluster that no route to model servers has", check: mirrored,
		},
	}
}

func hedged(g *gateway, report report) {
	for _, r := range g.toPools() {
		policy, at := r.action.GetHedgePolicy(), r.at.with("route", "hedge_policy")
		if policy == nil {
			policy, at = r.host.GetHedgePolicy(), r.hostAt.with("hedge_policy")
		}
		if policy.GetHedgeOnPerTryTimeout() {
			report(at.with("hedge_on_per_try_timeout"), "%s has hedge_on_per_try_timeout", r.label())
		}
	}
}

// mirrors are the policies of a level, and where they stand.
type mirrors struct {
	policies []*routev3.RouteAction_RequestMirrorPolicy
	at       path
}

func mirrored(g *gateway, report report) {
	told := make(map[*routev3.RouteAction_RequestMirrorPolicy]bool) // of many routes once
	judge := func(m mirrors, r *route) {
		if len(m.policies) > 0 && !told[m.policies[0]] {
			told[m.policies[0]] = true
			g.toModels(m, r, report)
		}
	}
	for _, r := range g.toPools() {
		own := len(r.clusters) == 0
		for _, name := range r.clusters {
			if c := g.cluster(name); c != nil && len(c.options.GetRequestMirrorPolicies()) > 0 { // in place of the route's
				judge(mirrors{c.options.GetRequestMirrorPolicies(), c.optionsAt}, r)
			} else {
				own = true
			}
		}
		if own {
			judge(r.mirrors(), r)
		}
	}
}

// mirrors are those of the nearest level that has any.
func (r *route) mirrors() mirrors {
	for _, level := range []mirrors{
		{r.action.GetRequestMirrorPolicies(), r.at.with("route")},
		{r.host.GetRequestMirrorPolicies(), r.hostAt},
		{r.m.routeConfig.GetRequestMirrorPolicies(), r.m.routeConfigAt},
	} {
		if len(level.policies) > 0 {
			return level
		}
	}
	return mirrors{}
}

// toModels reports those that copy requests to model servers.
func (g *gateway) toModels(m mirrors, r *route, report report) {
	for i, policy := range m.policies {
		if g.isPool(policy.GetCluster()) {
			report(m.at.item("request_mirror_policies", i), "%s is mirrored to the cluster %s", r.label(), quoted(policy.GetCluster()))
		}
	}
}
