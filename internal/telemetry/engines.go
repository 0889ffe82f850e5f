package telemetry

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// Engine is what an engine tells of its caches in its own metrics. What is NaN has no
// series.
type Engine struct {
	// Queries and Hits are tokens of prompts that were looked up in the prefix cache, and
	// that were found, since the engine began.
	Queries, Hits float64
	// HitRate and Usage are shares, 0 to 1: of the prompts that is found, and of the KV
	// cache that is in use.
	HitRate, Usage float64
}

var engineMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*Engine) float64
}{
	{
		prometheus.NewDesc("warmpath_engine_prefix_cache_queries_total",
			"Tokens of prompts that the engine looked up in its prefix cache, as it says itself.", []string{"endpoint"}, nil),
		prometheus.CounterValue, func(e *Engine) float64 { return e.Queries },
	},
	{
		prometheus.NewDesc("warmpath_engine_prefix_cache_hits_total",
			"Tokens of prompts that the engine found in its prefix cache, as it says itself.", []string{"endpoint"}, nil),
		prometheus.CounterValue, func(e *Engine) float64 { return e.Hits },
	},
	{
		prometheus.NewDesc("warmpath_engine_cache_hit_ratio",
			"Share of the prompts that the engine finds in its cache, as it says itself.", []string{"endpoint"}, nil),
		prometheus.GaugeValue, func(e *Engine) float64 { return e.HitRate },
	},
	{
		prometheus.NewDesc("warmpath_engine_kv_cache_usage_ratio",
			"Share of the engine's KV cache that is in use, as it says itself.", []string{"endpoint"}, nil),
		prometheus.GaugeValue, func(e *Engine) float64 { return e.Usage },
	},
}

// SetEngine notes what an endpoint's engine tells.
func (m *Metrics) SetEngine(address string, e Engine) { m.endpoints.of(address).engine.Store(&e) }

// ForgetEngine takes what an endpoint's engine has told out: it does not tell any more.
func (m *Metrics) ForgetEngine(address string) {
	if t, ok := m.endpoints.totals.Load(address); ok {
		t.(*totals).engine.Store(nil)
	}
}

func (t *totals) collectEngine(ch chan<- prometheus.Metric, address string) {
	e := t.engine.Load()
	if e == nil {
		return
	}
	for _, m := range engineMetrics {
		if value := m.of(e); !math.IsNaN(value) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, address)
		}
	}
}
