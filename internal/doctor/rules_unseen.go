package doctor

// unseenRules are about what could not be looked at.
func unseenRules() []Rule {
	return []Rule{
		{
			ID: "not-seen", Severity: Warning, What: "listeners, routes, clusters of routes or warmpath's filter come from elsewhere, or are chosen in a way that is not followed here",
			Why: "what is wrong there is not found: that nothing else is told means nothing", Source: "DOCTOR.md, What was measured",
			Fix: "ask the Envoy that runs, which has what came over LDS, RDS and ECDS: --admin URL. Look at scoped routes, VHDS, matchers, composite filters and plugins that name clusters yourself", check: notSeen,
		},
	}
}

// discovered are the filters whose configuration is not known here, if warmpath's may be
// among them.
func (m *manager) discovered() (unseen []httpFilter) {
	for _, f := range m.filters {
		if m.processor == nil && f.unseen != "" {
			unseen = append(unseen, f)
		}
	}
	return unseen
}

func notSeen(g *gateway, report report) {
	if g.overLDS() {
		report(g.root.with("dynamic_resources", "lds_config"), "listeners come over LDS")
	}
	for _, m := range g.looked() {
		for _, f := range m.discovered() {
			report(f.unseenAt, "the filter %s %s", quoted(f.name), f.unseen)
		}
		if p := m.processor; p != nil && p.matchedAt != nil {
			report(p.matchedAt, "a matcher says whether %s runs", quoted(p.name))
		}
		for _, r := range m.routes {
			if at, ok := r.plugin(); ok {
				report(at, "%s has a plugin that names its cluster", r.label())
			}
		}
		if m.routeConfig.GetVhds() != nil {
			report(m.routeConfigAt.with("vhds"), "virtual hosts come over VHDS")
		}
		switch {
		case m.GetScopedRoutes() != nil:
			report(m.at.with("scoped_routes"), "the connection manager %s has scoped routes", quoted(m.GetStatPrefix()))
		case m.GetRds() != nil && m.routeConfig == nil:
			report(m.at.with("rds"), "the routes %s come over RDS", quoted(m.GetRds().GetRouteConfigName()))
		}
		for i, host := range m.routeConfig.GetVirtualHosts() {
			if host.GetMatcher() != nil {
				report(m.routeConfigAt.item("virtual_hosts", i).with("matcher"), "the virtual host %s has a matcher", quoted(host.GetName()))
			}
		}
	}
}

// plugin tells whether the route asks one for its cluster, and where that stands.
func (r *route) plugin() (path, bool) {
	if r.action.GetInlineClusterSpecifierPlugin() != nil {
		return r.at.with("route", "inline_cluster_specifier_plugin"), true
	}
	return r.at.with("route", "cluster_specifier_plugin"), r.action.GetClusterSpecifierPlugin() != ""
}
