package replica

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// metrics is /metrics of one replica: names, labels and buckets of vLLM's V1
// engine (vllm/v1/metrics/loggers.py). Times are the real ones, divided by the
// time scale like everything that a client sees. What vLLM has beyond these is
// left out.
type metrics struct {
	registry   *prometheus.Registry
	firstToken prometheus.Histogram
	ended      *prometheus.CounterVec // by finished_reason
}

// aborted is the finished_reason of a request whose client has left.
const aborted = "abort"

func newMetrics(model string, counters func() engine.Counters) *metrics {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	m := &metrics{
		registry: prometheus.NewPedanticRegistry(),
		firstToken: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm:time_to_first_token_seconds", Help: "Histogram of time to first token in seconds.", ConstLabels: labels,
			Buckets: []float64{
				0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
				0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
			},
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "Count of successfully processed requests.", ConstLabels: labels,
		}, []string{"finished_reason"}),
	}
	for _, reason := range []string{"stop", "length", aborted} {
		m.ended.WithLabelValues(reason) // vLLM shows them from the start
	}
	m.registry.MustRegister(m.firstToken, m.ended, newEngineCollector(labels, counters))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// track returns the metrics of a request that begins now.
func (m *metrics) track() requestMetrics { return requestMetrics{metrics: m, begun: time.Now()} }

// requestMetrics is what one request adds to the metrics.
type requestMetrics struct {
	*metrics
	begun time.Time
	done  bool
}

// first says that the first token is there.
func (r *requestMetrics) first() { r.firstToken.Observe(time.Since(r.begun).Seconds()) }

// end counts the request, once, by the first reason given.
func (r *requestMetrics) end(reason string) {
	if !r.done {
		r.done = true
		r.ended.WithLabelValues(reason).Inc()
	}
}

// engineCollector shows the engine's counters as they are when asked.
type engineCollector struct {
	counters func() engine.Counters
	values   []engineValue
}

// engineValue is one metric and how it is computed.
type engineValue struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(engine.Counters) float64
}

func newEngineCollector(labels prometheus.Labels, counters func() engine.Counters) engineCollector {
	c := engineCollector{counters: counters}
	add := func(kind prometheus.ValueType, name, help string, value func(engine.Counters) float64) {
		c.values = append(c.values, engineValue{prometheus.NewDesc(name, help, nil, labels), kind, value})
	}
	usage := func(c engine.Counters) float64 { return float64(c.PinnedBlocks) / float64(c.Blocks) }
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add(gauge, "vllm:num_requests_running", "Number of requests in model execution batches.",
		func(c engine.Counters) float64 { return float64(c.Running) })
	add(gauge, "vllm:num_requests_waiting", "Number of requests waiting to be processed.",
		func(c engine.Counters) float64 { return float64(c.Waiting) })
	add(gauge, "vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", usage)
	add(gauge, "vllm:gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage. DEPRECATED: Use vllm:kv_cache_usage_perc instead.", usage)
	add(counter, "vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.",
		func(c engine.Counters) float64 { return float64(c.QueriedTokens) })
	add(counter, "vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.",
		func(c engine.Counters) float64 { return float64(c.HitTokens) })
	add(counter, "vllm:prompt_tokens_total", "Number of prefill tokens processed.",
		func(c engine.Counters) float64 { return float64(c.PromptTokens) })
	add(counter, "vllm:generation_tokens_total", "Number of generation tokens processed.",
		func(c engine.Counters) float64 { return float64(c.GeneratedTokens) })
	return c
}

// Describe implements [prometheus.Collector].
func (c engineCollector) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.values {
		to <- v.description
	}
}

// Collect implements [prometheus.Collector].
func (c engineCollector) Collect(to chan<- prometheus.Metric) {
	now := c.counters()
	for _, v := range c.values {
		to <- prometheus.MustNewConstMetric(v.description, v.kind, v.value(now))
	}
}
