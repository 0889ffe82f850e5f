package doctor

import (
	"fmt"
	"strings"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Rule is a row of the table.
type Rule struct {
	ID       string
	Severity Severity
	// What is found, Why it matters, Source where that is shown, Fix what to do.
	What, Why, Source, Fix string
	// check reports every place where it is so; nil for rules of a running gateway.
	check func(*gateway, report)
}

// report tells of a place, and what is there.
type report func(at path, format string, args ...any)

// Examine returns what is wrong with a configuration, in its order. The error says why
// it is no configuration of Envoy's.
func Examine(d *Document, s Setup) ([]Finding, error) {
	g := &gateway{
		setup: s, doc: d, named: map[string]*cluster{}, delivered: map[string]delivered{}, extensions: map[string]extension{},
		assigned: map[string]*endpointv3.ClusterLoadAssignment{},
	}
	g.toPools, g.steered = sync.OnceValue(g.findToPools), sync.OnceValue(g.findSteered)
	g.judged, g.pools = sync.OnceValue(g.findJudged), sync.OnceValue(g.findPools)
	g.retries = sync.OnceValue(g.findRetries)
	read := g.readBootstrap
	if _, is := d.find(path{"configs"}); is {
		read = g.readDump
	}
	if err := read(); err != nil {
		return nil, err
	}
	var findings []Finding
	for _, rule := range Rules() {
		if rule.check == nil {
			continue
		}
		rule.check(g, func(at path, format string, args ...any) {
			f := rule.Finding(fmt.Sprintf(format, args...))
			d.place(&f, at)
			findings = append(findings, f)
		})
	}
	unknown := Named("unknown")
	if g.dump {
		unknown = Named("unknown-here")
	}
	for _, c := range g.complaints {
		f := unknown.Finding(c.text)
		d.place(&f, c.at)
		findings = append(findings, f)
	}
	return sorted(findings), nil
}

// Finding makes one of the rule, without a place.
func (r Rule) Finding(found string) Finding {
	const most = 300 // bytes; names and values come from the configuration
	if len(found) > most {
		found = strings.ToValidUTF8(found[:most], "") + "…"
	}
	return Finding{ID: r.ID, Severity: r.Severity, Found: found, Why: r.Why + " (" + r.Source + ")", Fix: r.Fix}
}

// Named returns the rule of an id, which must be one of [Rules].
func Named(id string) Rule {
	for _, r := range Rules() {
		if r.ID == id {
			return r
		}
	}
	return Rule{ID: id, Severity: Error}
}

// Rules are all rules, in the order of docs/DOCTOR.md.
func Rules() []Rule {
	var rules []Rule
	for _, group := range [][]Rule{filterRules(), unseenRules(), settingRules(), mutationRules(), modeRules(), clientRules(), routeRules(), copyRules(), poolRules(), extProcRules(), controlRules(), setupRules(), stateRules(), liveRules()} {
		rules = append(rules, group...)
	}
	return rules
}

// Live tells whether the rule is about a gateway that runs, and not its configuration.
func (r Rule) Live() bool { return r.check == nil && !strings.HasPrefix(r.ID, "unknown") }
