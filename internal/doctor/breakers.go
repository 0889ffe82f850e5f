package doctor

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// limit is the circuit breaker's for the default priority: the field's value or Envoy's
// default.
func (c *cluster) limit(of func(*clusterv3.CircuitBreakers_Thresholds) *wrapperspb.UInt32Value, otherwise uint32) (uint32, path) {
	for i, t := range c.GetCircuitBreakers().GetThresholds() {
		if t.GetPriority() == corev3.RoutingPriority_DEFAULT {
			if n := of(t); n != nil {
				otherwise = n.GetValue()
			}
			return otherwise, c.at.with("circuit_breakers").item("thresholds", i)
		}
	}
	return otherwise, c.at.with("circuit_breakers")
}

// breakers reports the limits of a cluster that are met too early.
func (c *cluster) breakers(report report) {
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
		n, where := c.limit(l.of, defaultBreaker)
		if at = where; n <= defaultBreaker {
			low = append(low, l.name)
		}
	}
	if len(low) > 0 {
		report(at, "of the cluster %s: %s", quoted(c.GetName()), strings.Join(low, ", "))
	}
}

func poolBreakers(g *gateway, report report) {
	for _, c := range g.pools() {
		c.breakers(report)
	}
}

func retryBreaker(g *gateway, report report) {
	for _, c := range g.pools() {
		budget := slices.ContainsFunc(c.GetCircuitBreakers().GetThresholds(), func(t *clusterv3.CircuitBreakers_Thresholds) bool { return t.GetRetryBudget() != nil })
		if n, at := c.limit((*clusterv3.CircuitBreakers_Thresholds).GetMaxRetries, 3); g.setup.Retries && n < 100 && !budget {
			report(at.with("max_retries"), "max_retries of the cluster %s is %d", quoted(c.GetName()), n)
		}
	}
}
