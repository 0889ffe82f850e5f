package doctor

import (
	"slices"
	"strings"
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
			ID: "unknown-here", Severity: Note, What: "something in a dump that Envoy 1.40 does not know",
			Why: "the Envoy that runs with it is newer, and what it does there is not looked at", Source: "envoy --mode validate",
			Fix: "nothing; look at that place yourself",
		},
		{
			ID: "no-ext-proc", Severity: Error, What: "no ext_proc filter that asks warmpath",
			Why: "nothing is steered: Envoy chooses by itself", Source: "ARCHITECTURE.md, The life of a request",
			Fix: "add the filter that `warmpath envoy --for filter` prints, before the router", check: noExtProc,
		},
		{
			ID: "filter-off", Severity: Warning, What: "the filter is disabled, or told nothing, on a route to model servers",
			Why: "requests of that route are not steered and not counted", Source: "SECURITY.md, What a client could try",
			Fix: "take `disabled` out, or override the processing_mode of the filter there, or send the route to a cluster of its own", check: filterOff,
		},
		{
			ID: "filter-elsewhere", Severity: Warning, What: "the filter is on for a route that does not lead to model servers",
			Why: "warmpath decides on its requests too, and counts them at endpoints that never get them", Source: "DOCTOR.md, What was measured",
			Fix: "disable it there: typed_per_filter_config with ExtProcPerRoute and disabled: true", check: filterElsewhere,
		},
		{
			ID: "filter-name", Severity: Warning, What: "the filter has the usual name envoy.filters.http.ext_proc",
			Why:    "it collides with the filter that Istio adds for an InferencePool: warmpath is then asked twice a request, or not at all",
			Source: "RATIONALE.md, Why the filter's name `warmpath.ext_proc`?", Fix: "name it warmpath.ext_proc, here and in every typed_per_filter_config", check: filterName,
		},
		{
			ID: "asked-twice", Severity: Error, What: "a second filter asks warmpath, or may choose endpoints",
			Why: "two decisions are made and counted for one request, and the last one written holds", Source: "DOCTOR.md, What was measured",
			Fix: "keep one of them, or take envoy.lb out of the receiving_namespaces of the one that is not warmpath's", check: askedTwice,
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
		if len(m.discovered()) > 0 || g.overLDS() && len(g.processors()) == 0 {
			continue // it may be in what was not seen
		}
		report(m.at.with("http_filters"), "the connection manager %s has no ext_proc filter%s", quoted(m.GetStatPrefix()), m.notTaken())
	}
	if len(g.managers) == 0 && !g.overLDS() {
		report(path{}, "no HTTP connection manager in it")
	}
}

// notTaken tells of the ext_proc filters that are there, and are not warmpath's.
func (m *manager) notTaken() string {
	if len(m.foreign) == 0 {
		return ""
	}
	var names []string
	for _, p := range m.foreign[:min(3, len(m.foreign))] {
		names = append(names, quoted(p.name)+" asks the cluster "+quoted(p.cluster()))
	}
	return " of warmpath's: " + strings.Join(names, ", ")
}

func filterOff(g *gateway, report report) {
	for _, r := range g.toPools() {
		if r.off {
			report(r.offAt, "%s is off for %s", r.m.processor.name, r.label())
		}
	}
}

func filterElsewhere(g *gateway, report report) {
	toPools := make(map[*route]bool)
	for _, r := range g.toPools() {
		toPools[r] = true
	}
	for _, m := range g.processors() {
		for _, r := range m.routes {
			if _, unseen := r.plugin(); !r.off && !toPools[r] && !unseen {
				report(r.at, "%s is on for %s", m.processor.name, r.label())
			}
		}
	}
}

func (r *route) label() string {
	if r.GetName() != "" {
		return "the route " + quoted(r.GetName())
	}
	if _, ok := r.plugin(); ok {
		return "the route that asks a plugin"
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

func askedTwice(g *gateway, report report) {
	own := make(map[string]bool) // clusters in which warmpath is asked
	for _, c := range g.processorConfigs() {
		own[c.cluster()] = c.cluster() != ""
	}
	g.eachForeign(func(r *route, p *processor) {
		set := r.setting(p.httpFilter)
		if set.off || modeOf(p, overrides(set)).silent() {
			return
		}
		switch c := p.configWith(overrides(set)); {
		case own[c.cluster()] || g.reachesWarmpath(g.cluster(c.cluster())):
			report(p.at, "%s asks warmpath too, beside %s", quoted(p.name), quoted(r.m.processor.name))
		case slices.Contains(c.namespaces, namespace):
			report(p.at, "%s may write %s too, beside %s", quoted(p.name), namespace, quoted(r.m.processor.name))
		}
	})
}

func processorBefore(g *gateway, report report) {
	g.eachForeign(func(r *route, p *processor) {
		if at, passes := r.through(p); passes && p.index < r.m.processor.index {
			report(at, "%s stands before %s", p.name, r.m.processor.name)
		}
	})
}

func processorAfter(g *gateway, report report) {
	g.eachForeign(func(r *route, p *processor) {
		if at, passes := r.through(p); g.setup.Retries && passes && p.index > r.m.processor.index {
			report(at, "%s stands behind %s", p.name, r.m.processor.name)
		}
	})
}

func compressorAfter(g *gateway, report report) {
	for _, r := range g.asked() {
		for _, f := range r.m.filters[r.m.processor.index+1:] {
			if g.setup.Inspection && strings.HasSuffix(f.kind, ".Compressor") && !r.setting(f).off {
				report(f.at, "%s stands behind %s", f.name, r.m.processor.name)
			}
		}
	}
}

func bufferFilter(g *gateway, report report) {
	for _, r := range g.judged() {
		for _, f := range r.m.filters {
			if least, at := r.buffered(f); least < uint64(g.setup.BodyLimit) {
				report(at.with("max_request_bytes"), "max_request_bytes of %s is %d, limits.requestBodyBytes %d", f.name, least, g.setup.BodyLimit)
			}
		}
	}
}
