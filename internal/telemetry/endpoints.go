package telemetry

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/internal/load"
)

// endpoints collects what is counted for each endpoint. Endpoints come and go
// for years, so those that the tracker has forgotten are dropped: at a scrape, and when
// there are many, as there may be no scrapes.
type endpoints struct {
	loads  *load.Tracker
	totals sync.Map // address → *totals
	// size is how many totals there are, and many how many are looked through again.
	size, many atomic.Int64
}

// fewEndpoints is how many need not be looked through.
const fewEndpoints = 1024

// totals are what is counted of one endpoint.
type totals struct {
	chosen                     atomic.Uint64
	promptTokens, cachedTokens atomic.Uint64
	// inspected: the tokens mean something.
	inspected atomic.Bool
	// engine is nil while nothing is known.
	engine atomic.Pointer[Engine]
}

func newEndpoints(loads *load.Tracker) *endpoints {
	e := &endpoints{loads: loads}
	e.many.Store(fewEndpoints)
	return e
}

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
		if t, ok = e.totals.LoadOrStore(address, new(totals)); !ok && e.size.Add(1) > e.many.Load() {
			e.prune()
		}
	}
	return t.(*totals)
}

// prune drops the endpoints that the tracker has forgotten. It is next due when there
// are twice as many as are left, so that it costs little for each.
func (e *endpoints) prune() {
	e.totals.Range(func(address, _ any) bool {
		if _, known := e.loads.Lookup(address.(string)); !known {
			if _, had := e.totals.LoadAndDelete(address); had {
				e.size.Add(-1)
			}
		}
		return true
	})
	e.many.Store(max(fewEndpoints, 2*e.size.Load()))
}

// cached counts the tokens of a prompt. known says that the endpoint has told how many
// were cached; engines leave that out when it is none, so from one that has told it
// once silence is a 0, and from others it says nothing. It reports whether they count.
func (e *endpoints) cached(address string, prompt, cached int64, known bool) (counts bool) {
	t := e.of(address)
	if known {
		t.inspected.Store(true)
	}
	if counts = t.inspected.Load(); counts {
		t.promptTokens.Add(uint64(prompt))
		t.cachedTokens.Add(uint64(cached))
	}
	return counts
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
	for _, c := range e.loads.Snapshot() {
		ch <- prometheus.MustNewConstMetric(outstandingDesc, prometheus.GaugeValue, float64(c.Outstanding), c.Address)
	}
	e.prune()
	e.totals.Range(func(address, value any) bool {
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
