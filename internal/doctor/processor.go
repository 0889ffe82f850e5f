package doctor

import (
	"slices"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// processor is an ext_proc filter.
type processor struct {
	*extprocv3.ExternalProcessor
	httpFilter
	index int // in the chain
}

// cluster is the name of that in which the filter's server is asked, "" without one.
func (p *processor) cluster() string { return p.GetGrpcService().GetEnvoyGrpc().GetClusterName() }

// processorOf finds warmpath's filter among those that may be others': by its name, else
// by its cluster's name or its address, else by what it lets the server choose. The only
// one there is may be anybody's, and advice for warmpath's would open somebody's
// guardrail.
func (g *gateway) processorOf(m *manager) (own *processor, foreign []*processor) {
	var all []*processor
	for i, f := range m.filters {
		if p, ok := f.message.(*extprocv3.ExternalProcessor); ok {
			all = append(all, &processor{p, f, i})
		}
	}
	for _, is := range []func(*processor) bool{
		func(p *processor) bool { return strings.Contains(p.name, "warmpath") },
		func(p *processor) bool { return strings.Contains(p.cluster(), "warmpath") },
		func(p *processor) bool { return g.reachesWarmpath(g.cluster(p.cluster())) },
		(*processor).steers,
	} {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i], slices.Delete(slices.Clone(all), i, i+1)
		}
	}
	return nil, all
}

// steers tells whether the server may choose endpoints by metadata.
func (p *processor) steers() bool {
	return slices.Contains(p.GetMetadataOptions().GetReceivingNamespaces().GetUntyped(), namespace)
}

// reachesWarmpath tells whether an endpoint of the cluster is where warmpath listens, as
// far as that is known.
func (g *gateway) reachesWarmpath(c *cluster) bool {
	if c == nil || g.setup.ExtProc == "" {
		return false
	}
	addresses, _ := g.endpoints(c)
	return slices.ContainsFunc(addresses, func(a string) bool { return numeric(a) == numeric(g.setup.ExtProc) })
}

// numeric writes the one name out that stands for the same everywhere.
func numeric(address string) string {
	if port, ok := strings.CutPrefix(address, "localhost:"); ok {
		return "127.0.0.1:" + port
	}
	return address
}
