package doctor

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// endpoints are the addresses of the cluster's endpoints; not ok if they are not known, or
// are names that may stand for any.
func (g *gateway) endpoints(c *cluster) (addresses []string, ok bool) {
	if c == nil {
		return nil, false
	}
	assignment := c.GetLoadAssignment()
	if c.GetType() == clusterv3.Cluster_EDS {
		assignment = g.assigned[c.GetEdsClusterConfig().GetServiceName()]
	}
	for _, l := range assignment.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			addresses = append(addresses, socket(e.GetEndpoint().GetAddress()))
		}
	}
	return addresses, assignment != nil && (c.GetType() == clusterv3.Cluster_EDS || c.GetType() == clusterv3.Cluster_STATIC)
}

func addressTwice(g *gateway, report report) {
	for _, c := range g.pools() {
		addresses, _ := g.endpoints(c)
		slices.Sort(addresses)
		for i, a := range addresses {
			if a != "" && i > 0 && a == addresses[i-1] && (i < 2 || a != addresses[i-2]) {
				report(c.at.with("load_assignment"), "the cluster %s has %s more than once", quoted(c.GetName()), a)
			}
		}
	}
}

func membersMissing(g *gateway, report report) {
	pools := g.pools()
	if len(g.setup.Members) == 0 || len(pools) == 0 {
		return
	}
	c := pools[0]
	if named := g.cluster(g.setup.Pools[0]); named != nil {
		c = named
	}
	there, ok := g.endpoints(c)
	if !ok {
		return
	}
	known := make(map[string]bool, len(there))
	for _, a := range there {
		known[a] = true
	}
	var missing []string
	for _, m := range g.setup.Members {
		if !known[m] {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		report(c.at.with("load_assignment"), "the cluster %s has not %s", quoted(c.GetName()), strings.Join(missing[:min(5, len(missing))], ", "))
	}
}
