package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/internal/route"
)

// demand collects what each pool has to do, at a scrape and not before.
type demand struct {
	mu    sync.Mutex
	pools []pooled
}

type pooled struct {
	name string
	now  func() route.Demand
}

// CollectDemand asks for the demand of a pool at each scrape, once for each name. An
// empty name is the default pool's.
func (m *Metrics) CollectDemand(pool string, now func() route.Demand) {
	m.pools.demand.mu.Lock()
	defer m.pools.demand.mu.Unlock()
	m.pools.demand.pools = append(m.pools.demand.pools, pooled{poolName(pool), now})
}

var (
	poolOutstandingDesc = prometheus.NewDesc("warmpath_pool_outstanding_requests",
		"Requests that run at the pool's endpoints now.", []string{"pool"}, nil)
	poolBoundDesc = prometheus.NewDesc("warmpath_pool_bound_requests",
		"Requests that may run at the pool's endpoints, each at its bound of now.", []string{"pool"}, nil)
	poolWantedDesc = prometheus.NewDesc("warmpath_pool_wanted_endpoints",
		"Endpoints that the pool should have for the requests that run, as a fraction.", []string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (d *demand) Describe(ch chan<- *prometheus.Desc) {
	ch <- poolOutstandingDesc
	ch <- poolBoundDesc
	ch <- poolWantedDesc
}

// Collect implements prometheus.Collector.
func (d *demand) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pools {
		now := p.now()
		for desc, value := range map[*prometheus.Desc]float64{
			poolOutstandingDesc: float64(now.Outstanding), poolBoundDesc: float64(now.Bound), poolWantedDesc: now.Wanted,
		} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, p.name)
		}
	}
}
