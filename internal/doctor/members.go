package doctor

import (
	"cmp"
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
		assignment = g.assigned[cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())]
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

// members are the endpoints of the default pool's cluster, and those that warmpath has; not
// ok if one of both is not known.
func (g *gateway) members() (c *cluster, there, wanted []string, ok bool) {
	pools := g.pools()
	if len(g.setup.Members) == 0 || len(pools) == 0 {
		return nil, nil, nil, false
	}
	c = pools[0]
	if named := g.cluster(g.setup.Pools[0]); named != nil {
		c = named
	}
	there, ok = g.endpoints(c)
	return c, there, g.setup.Members, ok
}

func membersMissing(g *gateway, report report) {
	if c, there, wanted, ok := g.members(); ok {
		if missing := without(wanted, there); len(missing) > 0 {
			report(c.at.with("load_assignment"), "the cluster %s has not %s", quoted(c.GetName()), some(missing))
		}
	}
}

// membersIdle leaves out what warmpath itself sends.
func membersIdle(g *gateway, report report) {
	if c, there, wanted, ok := g.members(); ok && !c.dynamic {
		if more := without(there, wanted); len(more) > 0 {
			report(c.at.with("load_assignment"), "the cluster %s has %s, and warmpath has not", quoted(c.GetName()), some(more))
		}
	}
}

// without are those of a list that another has not.
func without(list, other []string) (rest []string) {
	has := make(map[string]bool, len(other))
	for _, a := range other {
		has[a] = true
	}
	for _, a := range list {
		if !has[a] {
			rest = append(rest, a)
		}
	}
	return rest
}

// some are the first of a list.
func some(addresses []string) string { return strings.Join(addresses[:min(5, len(addresses))], ", ") }
