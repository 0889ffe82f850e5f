package telemetry

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/internal/load"
)

// endpoints collects what is counted for each endpoint. Endpoints come and go
// for years, so those that the tracker has forgotten are dropped at a scrape.
type endpoints struct {
	loads  *load.Tracker
	totals sync.Map // address → *atomic.Uint64
}

func newEndpoints(loads *load.Tracker) *endpoints { return &endpoints{loads: loads} }

var (
	outstandingDesc = prometheus.NewDesc("warmpath_outstanding_requests",
		"Requests that run at an endpoint now.", []string{"endpoint"}, nil)
	chosenDesc = prometheus.NewDesc("warmpath_endpoint_requests_total",
		"Requests that an endpoint was chosen for.", []string{"endpoint"}, nil)
)

// chosen counts a decision for an endpoint.
func (e *endpoints) chosen(address string) {
	total, ok := e.totals.Load(address)
	if !ok {
		total, _ = e.totals.LoadOrStore(address, new(atomic.Uint64))
	}
	total.(*atomic.Uint64).Add(1)
}

// Describe implements prometheus.Collector.
func (e *endpoints) Describe(ch chan<- *prometheus.Desc) {
	ch <- outstandingDesc
	ch <- chosenDesc
}

// Collect implements prometheus.Collector.
func (e *endpoints) Collect(ch chan<- prometheus.Metric) {
	counts := e.loads.Snapshot()
	known := make(map[string]bool, len(counts))
	for _, c := range counts {
		known[c.Address] = true
		ch <- prometheus.MustNewConstMetric(outstandingDesc, prometheus.GaugeValue, float64(c.Outstanding), c.Address)
	}
	e.totals.Range(func(address, total any) bool {
		if !known[address.(string)] {
			e.totals.Delete(address)
			return true
		}
		n := total.(*atomic.Uint64).Load()
		ch <- prometheus.MustNewConstMetric(chosenDesc, prometheus.CounterValue, float64(n), address.(string))
		return true
	})
}
