package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StatsPattern is a regular expression of the names of Envoy's counters that
// [Document.SetStats] takes.
const StatsPattern = "(update_rejected|membership_healthy|membership_total)$"

// SetStats adds counters of the Envoy that the configuration was asked of, by name.
func (d *Document) SetStats(stats map[string]float64) { d.stats = stats }

// stateRules are about what an Envoy says of how it fares with its configuration.
func stateRules() []Rule {
	return []Rule{
		{
			ID: "update-refused", Severity: Warning, What: "Envoy has refused what its control plane sent",
			Why: "it goes on with what it had: clusters or endpoints are not those that they should be", Source: "RATIONALE.md, Why linear caches and delta xDS?",
			Fix: "see why in its log, or in warmpath's (`xds` in /status); the count is from Envoy's start on, and once that is mended a POST to its admin listener's /reset_counters makes it 0", check: updateRefused,
		},
		{
			ID: "ext-proc-away", Severity: Error, What: "warmpath is not healthy for Envoy",
			Why: "Envoy asks nobody and chooses by itself", Source: "RATIONALE.md, What if warmpath is slow, frozen or gone?",
			Fix: "is it running (/readyz), at that address, with certificates that Envoy takes?", check: extProcAway,
		},
	}
}

func updateRefused(g *gateway, report report) {
	for _, name := range slices.Sorted(maps.Keys(g.doc.stats)) {
		if n := g.doc.stats[name]; strings.HasSuffix(name, "update_rejected") && n > 0 {
			report(path{}, "%s is %v", quoted(name), n)
		}
	}
}

func extProcAway(g *gateway, report report) {
	for _, c := range g.extProcs() {
		members := fmt.Sprintf("cluster.%s.membership_", c.GetName())
		if total := g.doc.stats[members+"total"]; total > 0 && g.doc.stats[members+"healthy"] == 0 {
			report(c.at, "of %v in the cluster %s none is healthy", total, quoted(c.GetName()))
		}
	}
}
