package doctor

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// limit is the circuit breaker's for a priority: the field's value or Envoy's default.
func (c *cluster) limit(of func(*clusterv3.CircuitBreakers_Thresholds) *wrapperspb.UInt32Value, priority corev3.RoutingPriority, otherwise uint32) (uint32, path) {
	for i, t := range c.GetCircuitBreakers().GetThresholds() {
		if t.GetPriority() == priority {
			if n := of(t); n != nil {
				otherwise = n.GetValue()
			}
			return otherwise, c.at.with("circuit_breakers").item("thresholds", i)
		}
	}
	return otherwise, c.at.with("circuit_breakers")
}

// priorities are those of the routes to each pool; under "" those of routes whose header
// names it.
func (g *gateway) priorities() map[string][]corev3.RoutingPriority {
	used := make(map[string][]corev3.RoutingPriority)
	for _, r := range g.toPools() {
		names := r.clusters
		if r.byHeader != "" {
			names = append([]string{""}, names...)
		}
		for _, name := range names {
			if p := r.action.GetPriority(); !slices.Contains(used[name], p) {
				used[name] = append(used[name], p)
			}
		}
	}
	return used
}

// eachPriority calls for every pool and the priorities of its traffic.
func (g *gateway) eachPriority(do func(*cluster, corev3.RoutingPriority)) {
	used := g.priorities()
	for _, c := range g.pools() {
		if c.aggregate() {
			continue
		}
		own := append(slices.Clone(used[c.GetName()]), used[""]...)
		slices.Sort(own)
		for _, p := range slices.Compact(own) {
			do(c, p)
		}
		if len(own) == 0 {
			do(c, corev3.RoutingPriority_DEFAULT)
		}
	}
}

// ofPriority names one that is not the usual one.
func ofPriority(p corev3.RoutingPriority) string {
	if p == corev3.RoutingPriority_DEFAULT {
		return ""
	}
	return " for the priority " + p.String()
}

// breakers reports the limits of a cluster that are met too early.
func (c *cluster) breakers(priority corev3.RoutingPriority, report report) {
	var low []string
	at := c.at
	for _, l := range []struct {
		name string
		of   func(*clusterv3.CircuitBreakers_Thresholds) *wrapperspb.UInt32Value
	}{
		{"max_requests", (*clusterv3.CircuitBreakers_Thresholds).GetMaxRequests},
		{"max_connections", (*clusterv3.CircuitBreakers_Thresholds).GetMaxConnections},
		{"max_pending_requests", (*clusterv3.CircuitBreakers_Thresholds).GetMaxPendingRequests},
	} {
		n, where := c.limit(l.of, priority, defaultBreaker)
		if at = where; n <= defaultBreaker {
			low = append(low, l.name)
		}
	}
	for i, t := range c.GetCircuitBreakers().GetPerHostThresholds() {
		if n := t.GetMaxConnections(); t.GetPriority() == priority && n != nil && n.GetValue() <= defaultBreaker {
			report(c.at.with("circuit_breakers").item("per_host_thresholds", i), "of the cluster %s%s: max_connections for each host", quoted(c.GetName()), ofPriority(priority))
		}
	}
	if len(low) > 0 {
		report(at, "of the cluster %s%s: %s", quoted(c.GetName()), ofPriority(priority), strings.Join(low, ", "))
	}
}

func poolBreakers(g *gateway, report report) {
	g.eachPriority(func(c *cluster, p corev3.RoutingPriority) { c.breakers(p, report) })
}

func retryBreaker(g *gateway, report report) {
	g.eachPriority(func(c *cluster, p corev3.RoutingPriority) {
		budget := slices.ContainsFunc(c.GetCircuitBreakers().GetThresholds(), func(t *clusterv3.CircuitBreakers_Thresholds) bool {
			return t.GetPriority() == p && t.GetRetryBudget() != nil
		})
		if n, at := c.limit((*clusterv3.CircuitBreakers_Thresholds).GetMaxRetries, p, 3); g.setup.Retries && n < 100 && !budget {
			report(at.with("max_retries"), "max_retries of the cluster %s%s is %d", quoted(c.GetName()), ofPriority(p), n)
		}
	})
}
