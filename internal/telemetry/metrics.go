package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/load"
)

// Metrics are the program's Prometheus metrics. No label has a value that a
// client can choose, so their number is bounded by the membership.
type Metrics struct {
	registry *prometheus.Registry

	byReason *prometheus.CounterVec
	// promptChars and cachedChars are of the prompts whose warm part is known, by pool.
	promptChars, cachedChars *prometheus.CounterVec
	requested                map[string]*requested // by pool

	problems   []prometheus.Counter
	endpoints  *endpoints
	phases     phases
	missed     prometheus.Counter
	unanswered prometheus.Counter
	retried    prometheus.Counter
	requests   prometheus.Gauge
	inspected  []prometheus.Counter  // by result
	firstToken []prometheus.Observer // by what was expected
	trials     *trials

	// Nacks counts the resources that an Envoy refused, by type.
	Nacks *prometheus.CounterVec
	// Envoys is how many Envoys are connected to the control plane.
	Envoys prometheus.Gauge
	// ConfigGeneration counts the configurations applied, ConfigErrors those
	// that were refused.
	ConfigGeneration prometheus.Gauge
	ConfigErrors     prometheus.Counter
	pools            pools
	// PolicyFaults counts the policies in Envoy's configuration that could not be
	// used, by origin and problem.
	PolicyFaults *prometheus.CounterVec

	// CertificateExpiry is when the certificate in use expires, in Unix seconds;
	// CertificateErrors counts replaced files that were not taken over, TLSRefused
	// connections that ended in the handshake. All by listener.
	CertificateExpiry             *prometheus.GaugeVec
	CertificateErrors, TLSRefused *prometheus.CounterVec
	// Recorded counts the requests written to a recording, Unrecorded those that
	// should have been and were not, by reason.
	Recorded   prometheus.Counter
	Unrecorded *prometheus.CounterVec
	Gossip     Gossip
	// Leaked counts slots that no request holds any more and nobody gave back.
	Leaked prometheus.Counter
}

// NewMetrics registers all metrics in a registry of their own.
func NewMetrics(loads *load.Tracker) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), endpoints: newEndpoints(loads)}
	m.registerRequests()
	m.registerFleet()
	m.registerTLS()
	m.registerGossip()
	m.registerInspections()
	m.registerTrials()
	m.Recorded = m.counter("warmpath_recording_written_total", "Requests written to a recording.")
	m.Leaked = m.counter("warmpath_leaked_total", "Slots of endpoints that no request holds any more.")
	m.Unrecorded = m.counters("warmpath_recording_dropped_total", "Requests that should have been recorded and were not.", "reason")
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.endpoints,
	)
	return m
}

// CountRefused registers the count of requests that were left to Envoy.
func (m *Metrics) CountRefused(count func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "warmpath_refused_total", Help: "Requests left to Envoy because too many others were being served.",
	}, func() float64 { return float64(count()) }))
}

// CountForgotten registers the count of levels of prompts that are not remembered
// any more.
func (m *Metrics) CountForgotten(count func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "warmpath_prefixes_forgotten_total", Help: "Levels of prompts that gave way to newer ones in the memory of what was served where.",
	}, func() float64 { return float64(count()) }))
}

// Registry is where the metrics can be gathered.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

func (m *Metrics) registerRequests() {
	m.byReason = m.counters("warmpath_decisions_total", "Routing decisions.", "pool", "strategy", "reason")
	m.promptChars = m.counters("warmpath_prompt_characters_total",
		"Characters of the prompts of which it is known how much the chosen endpoint has served before.", "pool")
	m.cachedChars = m.counters("warmpath_expected_cached_characters_total",
		"Characters of these prompts that the chosen endpoint has served before.", "pool")
	m.requested = make(map[string]*requested)
	m.countRequests(DefaultPool)
	problems := m.counters("warmpath_problems_total",
		"What kept requests from being routed by their text alone. None of them fails a request.", "problem")
	for _, p := range extproc.Problems() {
		if p == extproc.NoProblem {
			m.problems = append(m.problems, nil)
			continue
		}
		m.problems = append(m.problems, problems.WithLabelValues(p.String()))
	}
	m.registerPhases()
	m.missed = m.counter("warmpath_override_missed_total",
		"Responses that Envoy sent elsewhere than decided: it passed the chosen endpoint over.")
	m.retried = m.counter("warmpath_retried_total", "Responses for which Envoy tried more than one endpoint.")
	m.unanswered = m.counter("warmpath_unanswered_total",
		"Requests whose stream ended before the response's headers: the client left, or Envoy gave up waiting for warmpath and the response runs on uncounted.")
	m.requests = m.gauge("warmpath_requests_in_flight", "Requests whose stream from Envoy is open.")
}

func (m *Metrics) registerFleet() {
	m.Nacks = m.counters("warmpath_xds_nacks_total", "Resources that an Envoy refused.", "type")
	m.Envoys = m.gauge("warmpath_xds_envoys", "Envoys connected to the control plane.")
	m.ConfigGeneration = m.gauge("warmpath_config_generation", "Configurations applied since the start.")
	m.ConfigErrors = m.counter("warmpath_config_errors_total", "Configurations refused; the last good one stays.")
	m.PolicyFaults = m.counters("warmpath_policy_faults_total",
		"Policies in Envoy's configuration that could not be used, by where they stand and what is wrong.", "origin", "problem")
	m.registerPools()
}

func (m *Metrics) registerTLS() {
	m.CertificateErrors = m.counters("warmpath_tls_certificate_errors_total",
		"Changes of a listener's certificate files that were not taken over; the last good ones stay.", "listener")
	m.TLSRefused = m.counters("warmpath_tls_refused_total",
		"Connections that ended in the TLS handshake: no certificate, a wrong one, or no TLS at all.", "listener")
	m.CertificateExpiry = m.gauges("warmpath_tls_certificate_expiry_timestamp_seconds",
		"When the certificate that a listener uses expires, in Unix time.", "listener")
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) decided(r *extproc.Record) {
	m.requests.Inc()
	d := &r.Decision
	m.requested[poolName(r.Pool)].count(r)
	m.countProblems(r)
	m.pools.countUnknown(r.Unknown)
	if d.Chosen != "" {
		m.endpoints.chosen(d.Chosen)
	}
	m.phases.observe(r)
}

func (m *Metrics) countProblems(r *extproc.Record) {
	for _, p := range r.Problems {
		m.problems[p].Inc()
	}
}

func (m *Metrics) served(r *extproc.Record) {
	if r.Missed {
		m.missed.Inc()
	}
	if r.Attempts > 1 {
		m.retried.Inc()
	}
}

func (m *Metrics) ended(r *extproc.Record) {
	defer m.requests.Dec() // last: at 0 all is counted
	if r.Unanswered {
		m.unanswered.Inc()
	}
	if r.Inspection != nil {
		m.countInspection(r)
	}
}

// panicked counts the one problem that may come before or after a decision.
func (m *Metrics) panicked() { m.problems[extproc.Panicked].Inc() }
