package doctor

import (
	"strings"

	h2mv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	j2mv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
)

// written is a rule by which a filter writes what a request says into metadata.
type written struct {
	at     path
	from   string // where the request has it
	header string // its header, "" if it is elsewhere
	to     pair
}

// pair is what such a rule writes.
type pair interface {
	GetMetadataNamespace() string
	GetKey() string
}

// writer tells whether a filter is one that writes metadata.
func (f httpFilter) writer() bool {
	switch f.message.(type) {
	case *h2mv3.Config, *j2mv3.JsonToMetadata:
		return true
	default:
		return false
	}
}

// writes are the rules of a writer's settings.
func writes(nearest level) (rules []written) {
	switch m := nearest.Message.(type) {
	case *h2mv3.Config:
		for i, rule := range m.GetRequestRules() {
			from := "the header " + quoted(rule.GetHeader())
			if rule.GetHeader() == "" {
				from = "the cookie " + quoted(rule.GetCookie())
			}
			at := nearest.at.item("request_rules", i)
			rules = append(rules, written{at.with("on_header_present"), from, rule.GetHeader(), rule.GetOnHeaderPresent()})
		}
	case *j2mv3.JsonToMetadata:
		for i, rule := range m.GetRequestRules().GetRules() {
			rules = append(rules, written{nearest.at.with("request_rules").item("rules", i).with("on_present"), "the body", "", rule.GetOnPresent()})
		}
	}
	return rules
}

// eachWritten calls for every such rule that holds on a route; what holds for many routes
// comes once.
func (g *gateway) eachWritten(do func(*route, httpFilter, written)) {
	told := make(map[string]bool)
	for _, r := range g.judged() {
		for _, f := range r.m.filters {
			if !f.writer() {
				continue
			}
			set := r.setting(f)
			nearest := set.nearest(level{f.message, f.configAt})
			place := nearest.at.String()
			if set.off || told[place] {
				continue
			}
			told[place] = true
			for _, w := range writes(nearest) {
				do(r, f, w)
			}
		}
	}
}

// metadataSteers reports filters by which a request's own words get to where the choice is
// read.
func metadataSteers(g *gateway, report report) {
	g.eachWritten(func(r *route, f httpFilter, w written) {
		if w.steers() && (w.header == "" || len(r.m.keptEarly(strings.ToLower(w.header))) > 0) {
			report(w.at, "%s writes %s of a client's to %s", quoted(f.name), w.from, namespace)
		}
	})
}

// steers tells whether the rule writes to where the choice is read.
func (w written) steers() bool {
	return w.to.GetMetadataNamespace() == namespace && w.to.GetKey() == destination
}
