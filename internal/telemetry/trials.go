package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// trials collects what has come of the policies on trial, at a scrape and not before. A
// pool that has never had one has no series.
type trials struct {
	mu    sync.Mutex
	pools []tried

	// Of the responses that were inspected while a pool was split.
	promptTokens, cachedTokens *prometheus.CounterVec
	firstToken                 *prometheus.HistogramVec
}

type tried struct {
	pool   string
	report func() (*trial.ShadowReport, *trial.SplitReport)
}

// CollectTrials asks for what has come of a pool's trials at each scrape, once for each
// name. An empty name is the default pool's.
func (m *Metrics) CollectTrials(pool string, report func() (*trial.ShadowReport, *trial.SplitReport)) {
	m.trials.mu.Lock()
	defer m.trials.mu.Unlock()
	m.trials.pools = append(m.trials.pools, tried{poolName(pool), report})
}

func (m *Metrics) registerTrials() {
	m.trials = &trials{
		promptTokens: m.counters("warmpath_split_inspected_prompt_tokens_total",
			"Tokens of the prompts whose responses were inspected, by the arm of the split.", "pool", "arm"),
		cachedTokens: m.counters("warmpath_split_inspected_cached_tokens_total",
			"Tokens of these prompts that the endpoints found in their caches.", "pool", "arm"),
		firstToken: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "warmpath_split_time_to_first_token_seconds",
			Help:    "Time from a request's headers to the first piece of text of its response, of the streams that were inspected, by the arm of the split.",
			Buckets: firstTokenBuckets(),
		}, []string{"pool", "arm"}),
	}
	m.registry.MustRegister(m.trials, m.trials.firstToken)
}

// inspected counts an inspected response of an arm; known as for [endpoints.cached].
func (t *trials) inspected(r *extproc.Record, known bool) {
	if r.Arm == trial.NoArm {
		return
	}
	pool, arm, i := poolName(r.Pool), r.Arm.String(), r.Inspection
	if !i.FirstToken.IsZero() {
		t.firstToken.WithLabelValues(pool, arm).Observe(i.FirstToken.Sub(r.Began).Seconds())
	}
	if known {
		t.promptTokens.WithLabelValues(pool, arm).Add(float64(i.PromptTokens))
		t.cachedTokens.WithLabelValues(pool, arm).Add(float64(i.CachedTokens))
	}
}

var (
	shadowDecisionsDesc = prometheus.NewDesc("warmpath_shadow_decisions_total",
		"Decisions on the requests that a shadow decides too, by whose they are.", []string{"pool", "policy", "reason"}, nil)
	shadowMovedDesc = prometheus.NewDesc("warmpath_shadow_moved_total",
		"Requests that the shadow would have sent to another endpoint.", []string{"pool"}, nil)
	shadowPromptDesc = prometheus.NewDesc("warmpath_shadow_prompt_characters_total",
		"Characters of the prompts that a shadow decides on too.", []string{"pool", "policy"}, nil)
	shadowCachedDesc = prometheus.NewDesc("warmpath_shadow_expected_cached_characters_total",
		"Characters of these prompts that the policy's endpoint has been sent before.", []string{"pool", "policy"}, nil)
	shadowBusiestDesc = prometheus.NewDesc("warmpath_shadow_busiest_requests_total",
		"Requests at the busiest endpoint for its weight, summed over the decisions.", []string{"pool", "policy"}, nil)
	shadowMeanDesc = prometheus.NewDesc("warmpath_shadow_mean_requests_total",
		"Requests at the mean endpoint, summed over the decisions.", []string{"pool", "policy"}, nil)
	shadowOutstandingDesc = prometheus.NewDesc("warmpath_shadow_outstanding_requests",
		"Requests that hold a slot in the shadow's world now.", []string{"pool"}, nil)
	splitDecisionsDesc = prometheus.NewDesc("warmpath_split_decisions_total",
		"Decisions while a pool is split, by the arm whose they are.", []string{"pool", "arm", "reason"}, nil)
	splitPromptDesc = prometheus.NewDesc("warmpath_split_prompt_characters_total",
		"Characters of the prompts that were decided on while a pool is split.", []string{"pool", "arm"}, nil)
	splitCachedDesc = prometheus.NewDesc("warmpath_split_expected_cached_characters_total",
		"Characters of these prompts that the chosen endpoint has been sent before.", []string{"pool", "arm"}, nil)
)

// Describe implements prometheus.Collector.
func (t *trials) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		shadowDecisionsDesc, shadowMovedDesc, shadowPromptDesc, shadowCachedDesc, shadowBusiestDesc, shadowMeanDesc,
		shadowOutstandingDesc, splitDecisionsDesc, splitPromptDesc, splitCachedDesc,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (t *trials) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
	}
	for _, p := range t.pools {
		shadow, split := p.report()
		if shadow != nil {
			count(shadowMovedDesc, float64(shadow.Moved), p.pool)
			ch <- prometheus.MustNewConstMetric(shadowOutstandingDesc, prometheus.GaugeValue, float64(shadow.Outstanding), p.pool)
			for policy, total := range map[string]trial.Total{"real": shadow.Real, "shadow": shadow.Shadow} {
				collectTotal(count, total, shadowDecisionsDesc, shadowPromptDesc, shadowCachedDesc, p.pool, policy)
				count(shadowBusiestDesc, total.Busiest, p.pool, policy)
				count(shadowMeanDesc, total.Mean, p.pool, policy)
			}
		}
		if split != nil {
			for arm, total := range map[trial.Arm]trial.Total{trial.MainArm: split.Main, trial.SplitArm: split.Split} {
				collectTotal(count, total, splitDecisionsDesc, splitPromptDesc, splitCachedDesc, p.pool, arm.String())
			}
		}
	}
}

// collectTotal collects what shadows and splits have in common.
func collectTotal(count func(*prometheus.Desc, float64, ...string), total trial.Total, decisions, prompt, cached *prometheus.Desc, pool, whose string) {
	for reason, n := range total.ByReason {
		count(decisions, float64(n), pool, whose, route.Reason(reason).String())
	}
	count(prompt, float64(total.Characters), pool, whose)
	count(cached, float64(total.Cached), pool, whose)
}
