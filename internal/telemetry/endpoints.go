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
	totals sync.Map // address → *totals
}

// totals are what is counted of one endpoint.
type totals struct {
	chosen                     atomic.Uint64
	promptTokens, cachedTokens atomic.Uint64
	// inspected: the tokens mean something.
	inspected atomic.Bool
	// engine is nil while nothing is known.
	engine atomic.Pointer[Engine]
}

func newEndpoints(loads *load.Tracker) *endpoints { return &endpoints{loads: loads} }

var (
	outstandingDesc = prometheus.NewDesc("warmpath_outstanding_requests",
		"Requests that run at an endpoint now.", []string{"endpoint"}, nil)
	chosenDesc = prometheus.NewDesc("warmpath_endpoint_requests_total",
		"Requests that an endpoint was chosen for.", []string{"endpoint"}, nil)
	promptTokensDesc = prometheus.NewDesc("warmpath_inspected_prompt_tokens_total",
		"Tokens of the prompts whose responses were inspected, as the endpoint counts them.", []string{"endpoint"}, nil)
	cachedTokensDesc = prometheus.NewDesc("warmpath_inspected_cached_tokens_total",
		"Tokens of these prompts that the endpoint found in its cache.", []string{"endpoint"}, nil)
)

// chosen counts a decision for an endpoint.
func (e *endpoints) chosen(address string) { e.of(address).chosen.Add(1) }

func (e *endpoints) of(address string) *totals {
	t, ok := e.totals.Load(address)
	if !ok {
		t, _ = e.totals.LoadOrStore(address, new(totals))
	}
	return t.(*totals)
}

// cached counts the tokens of a prompt. known says that the endpoint has told how many
// were cached; engines leave that out when it is none, so from one that has told it
// once silence is a 0, and from others it says nothing.
func (e *endpoints) cached(address string, prompt, cached int64, known bool) {
	t := e.of(address)
	if known {
		t.inspected.Store(true)
	}
	if t.inspected.Load() {
		t.promptTokens.Add(uint64(prompt))
		t.cachedTokens.Add(uint64(cached))
	}
}

// Describe implements prometheus.Collector.
func (e *endpoints) Describe(ch chan<- *prometheus.Desc) {
	ch <- outstandingDesc
	ch <- chosenDesc
	ch <- promptTokensDesc
	ch <- cachedTokensDesc
	for _, m := range engineMetrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (e *endpoints) Collect(ch chan<- prometheus.Metric) {
	counts := e.loads.Snapshot()
	known := make(map[string]bool, len(counts))
	for _, c := range counts {
		known[c.Address] = true
		ch <- prometheus.MustNewConstMetric(outstandingDesc, prometheus.GaugeValue, float64(c.Outstanding), c.Address)
	}
	e.totals.Range(func(address, value any) bool {
		if !known[address.(string)] {
			e.totals.Delete(address)
			return true
		}
		t := value.(*totals)
		count := func(desc *prometheus.Desc, n *atomic.Uint64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.Load()), address.(string))
		}
		count(chosenDesc, &t.chosen)
		if t.inspected.Load() {
			count(promptTokensDesc, &t.promptTokens)
			count(cachedTokensDesc, &t.cachedTokens)
		}
		t.collectEngine(ch, address.(string))
		return true
	})
}
