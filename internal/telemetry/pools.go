package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// pools are the metrics that each pool has of its own. Pools stand in the
// configuration, so their number is bounded.
type pools struct {
	membershipErrors *prometheus.CounterVec
	endpoints        *prometheus.GaugeVec // by state too
	healthPanic      *prometheus.GaugeVec
	leaving          *prometheus.GaugeVec
	unacknowledged   *prometheus.GaugeVec
	states           *states
	// unknown are the words for a pool that are none's.
	unknown struct{ pool, component, model prometheus.Counter }
}

// DefaultPool is what metrics call the pool without a name.
const DefaultPool = "default"

func poolName(name string) string { return cmp.Or(name, DefaultPool) }

// requested counts the requests of one pool.
type requested struct {
	decisions                [][]prometheus.Counter // by strategy and reason
	promptChars, cachedChars prometheus.Counter
}

// count counts a request once it is decided. A request of which nothing is known to
// be warm or cold counts in neither number of characters.
func (c *requested) count(r *extproc.Record) {
	d := &r.Decision
	c.decisions[d.Strategy][d.Reason].Inc()
	if cached, chars, known := r.Expected(); known {
		c.promptChars.Add(float64(chars))
		c.cachedChars.Add(float64(cached))
	}
}

// countRequests makes a pool's counters, so that counting looks nothing up by text.
func (m *Metrics) countRequests(pool string) {
	var byStrategy [][]prometheus.Counter
	for _, s := range route.Strategies() {
		var byReason []prometheus.Counter
		for _, r := range route.Reasons() {
			byReason = append(byReason, m.byReason.WithLabelValues(pool, s.String(), r.String()))
		}
		byStrategy = append(byStrategy, byReason)
	}
	m.requested[pool] = &requested{
		decisions:   byStrategy,
		promptChars: m.promptChars.WithLabelValues(pool), cachedChars: m.cachedChars.WithLabelValues(pool),
	}
}

func (m *Metrics) registerPools() {
	m.pools = pools{
		membershipErrors: m.counters("warmpath_membership_errors_total",
			"Memberships refused, in whole or an entry of it; what was good stays.", "pool"),
		endpoints:   m.gauges("warmpath_endpoints", "Endpoints of the membership by state.", "pool", "state"),
		healthPanic: m.gauges("warmpath_health_panic", "1 while no endpoint is healthy and all of them are used.", "pool"),
		leaving: m.gauges("warmpath_endpoints_leaving",
			"Endpoints that left the membership and still finish requests.", "pool"),
		unacknowledged: m.gauges("warmpath_rollout_unacknowledged",
			"1 when the last membership was not acknowledged by every Envoy in time.", "pool"),
		states: new(states),
	}
	m.registry.MustRegister(m.pools.states)
	unknown := m.counters("warmpath_unknown_names_total",
		"Requests with a name for their pool that no pool has, by what named it.", "kind")
	m.pools.unknown.pool = unknown.WithLabelValues("pool")
	m.pools.unknown.component = unknown.WithLabelValues("component")
	m.pools.unknown.model = unknown.WithLabelValues("model")
}

// countUnknown counts the names of a request that are no pool's, not which they are:
// they are the client's to choose.
func (p *pools) countUnknown(u extproc.Unknown) {
	if u.Pool {
		p.unknown.pool.Inc()
	}
	if u.Component {
		p.unknown.component.Inc()
	}
	if u.Model {
		p.unknown.model.Inc()
	}
}

// PoolMetrics are the metrics of one pool.
type PoolMetrics struct {
	// MembershipErrors counts the refused memberships and entries.
	MembershipErrors prometheus.Counter
	// HealthPanic is 1 while no endpoint is healthy and all are used.
	HealthPanic prometheus.Gauge
	// Leaving are the endpoints that have left the membership and drain.
	// Unacknowledged is 1 when the last change of it was not acknowledged by every
	// Envoy in time.
	Leaving, Unacknowledged prometheus.Gauge

	endpoints *prometheus.GaugeVec
}

// OfPool returns the metrics of a pool, from now on with a value each. An empty name
// is the default pool's. It must be called before the pool's first request.
func (m *Metrics) OfPool(name string) PoolMetrics {
	name = poolName(name)
	m.countRequests(name)
	p := PoolMetrics{
		MembershipErrors: m.pools.membershipErrors.WithLabelValues(name),
		HealthPanic:      m.pools.healthPanic.WithLabelValues(name),
		Leaving:          m.pools.leaving.WithLabelValues(name),
		Unacknowledged:   m.pools.unacknowledged.WithLabelValues(name),
		endpoints:        m.pools.endpoints.MustCurryWith(prometheus.Labels{"pool": name}),
	}
	p.SetEndpoints(nil)
	return p
}

// SetEndpoints tells how many endpoints the membership has of each state.
func (p PoolMetrics) SetEndpoints(counts map[fleet.State]int) {
	for _, state := range []fleet.State{fleet.Healthy, fleet.Unhealthy, fleet.Draining} {
		p.endpoints.WithLabelValues(state.String()).Set(float64(counts[state]))
	}
}
