package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/extproc"
)

func (m *Metrics) registerInspections() {
	results := m.counters("warmpath_inspected_responses_total", "Responses that were inspected, by what was read of them.", "result")
	for _, r := range extproc.InspectionResults() {
		m.inspected = append(m.inspected, results.WithLabelValues(r.String()))
	}
	first := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "warmpath_time_to_first_token_seconds",
		Help:    "Time from a request's headers to the first piece of text of its response, of the streams that were inspected, by what was expected of the cache.",
		Buckets: firstTokenBuckets(),
	}, []string{"cache"})
	m.registry.MustRegister(first)
	for _, e := range extproc.CacheExpectations() {
		m.firstToken = append(m.firstToken, first.WithLabelValues(e.String()))
	}
}

// firstTokenBuckets are 5 ms to 164 s.
func firstTokenBuckets() []float64 { return prometheus.ExponentialBuckets(0.005, 2, 16) }

func (m *Metrics) countInspection(r *extproc.Record) {
	i := r.Inspection
	m.inspected[i.Result].Inc()
	if !i.FirstToken.IsZero() {
		m.firstToken[r.CacheExpectation()].Observe(i.FirstToken.Sub(r.Began).Seconds())
	}
	known := false
	switch i.Result {
	case extproc.InspectionRead, extproc.InspectionNoCached:
		known = m.endpoints.cached(r.Served, i.PromptTokens, i.CachedTokens, i.Result == extproc.InspectionRead)
	}
	m.trials.inspected(r, known)
}
