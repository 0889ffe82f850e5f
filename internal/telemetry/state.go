package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/internal/route"
)

// MaxHotPrefixes is how many prefixes of a pool have series at most.
const MaxHotPrefixes = 10

// minHotShare is the part of the recent requests that a prefix must have for series of
// its own. Without it whatever is most frequent of a quiet pool would have some, and
// others at each scrape.
const minHotShare = 0.05

// PoolState is what is asked of a pool at each scrape, and not before. None of it may
// be nil.
type PoolState struct {
	Demand func() route.Demand
	// Bounds and Weights tell of each endpoint that may be chosen how many requests may
	// run there, and its weight.
	Bounds  func(f func(address string, load, bound int64))
	Weights func(f func(address string, weight float64))
	// MemoryBytes is the size of the memory of what was served where.
	MemoryBytes func() int
	// Hot lists the hottest prefixes, the hottest first.
	Hot        func() []HotPrefix
	Membership func() Membership
}

// HotPrefix is a beginning that many recent prompts have in common.
type HotPrefix struct {
	// Hash stands for it: salted, so that nobody can confirm a guess of the text.
	Hash string
	// Share is the part of the recent requests that have it, 0 to 1, Homes over how many
	// endpoints they are spread.
	Share float64
	Homes int
}

// Membership is what is known of a pool's membership.
type Membership struct {
	// Source is the kind of its source, as the configuration has it.
	Source string
	// Version is a hash of it. Routers with the same membership have the same.
	Version uint64
	// Age is how long ago the source has confirmed it: 0 as long as the source can be
	// asked and what it says is taken over.
	Age time.Duration
	// Unchanged is how long ago it last became another. Known says that there is one.
	Unchanged time.Duration
	Known     bool
}

// states collects the state of each pool.
type states struct {
	mu    sync.Mutex
	pools []pooled
}

type pooled struct {
	name  string
	state PoolState
}

// Collect asks for the state of a pool at each scrape. It is called once for each
// name; an empty one is the default pool's.
func (m *Metrics) Collect(pool string, state PoolState) {
	m.pools.states.mu.Lock()
	defer m.pools.states.mu.Unlock()
	m.pools.states.pools = append(m.pools.states.pools, pooled{poolName(pool), state})
}

var (
	poolOutstandingDesc = prometheus.NewDesc("warmpath_pool_outstanding_requests",
		"Requests that run at the pool's endpoints now.", []string{"pool"}, nil)
	poolBoundDesc = prometheus.NewDesc("warmpath_pool_bound_requests",
		"Requests that may run at the pool's endpoints, each at its bound of now.", []string{"pool"}, nil)
	poolWantedDesc = prometheus.NewDesc("warmpath_pool_wanted_endpoints",
		"Endpoints that the pool should have for the requests that run, as a fraction.", []string{"pool"}, nil)
	boundDesc = prometheus.NewDesc("warmpath_bound_requests",
		"Requests that may run at an endpoint now.", []string{"pool", "endpoint"}, nil)
	weightDesc = prometheus.NewDesc("warmpath_endpoint_weight",
		"Weight of an endpoint that may be chosen.", []string{"pool", "endpoint"}, nil)
	memoryDesc = prometheus.NewDesc("warmpath_prefix_memory_bytes",
		"Size of the memory of what was served where.", []string{"pool"}, nil)
	hotShareDesc = prometheus.NewDesc("warmpath_hot_prefix_ratio",
		"Share of the recent requests that begin with a prefix, of the hottest.", []string{"pool", "prefix"}, nil)
	hotHomesDesc = prometheus.NewDesc("warmpath_hot_prefix_homes",
		"Endpoints over which the requests with a prefix are spread, of the hottest.", []string{"pool", "prefix"}, nil)
	ageDesc = prometheus.NewDesc("warmpath_membership_age_seconds",
		"How long ago the source of the membership has confirmed it.", []string{"pool", "source"}, nil)
	unchangedDesc = prometheus.NewDesc("warmpath_membership_unchanged_seconds",
		"How long ago the membership last became another.", []string{"pool"}, nil)
	versionDesc = prometheus.NewDesc("warmpath_membership_version",
		"The first 52 bits of the membership's version, a hash of it.", []string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		poolOutstandingDesc, poolBoundDesc, poolWantedDesc, boundDesc, weightDesc, memoryDesc,
		hotShareDesc, hotHomesDesc, ageDesc, unchangedDesc, versionDesc,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{p.name}, labels...)...)
		}
		now := p.state.Demand()
		gauge(poolOutstandingDesc, float64(now.Outstanding))
		gauge(poolBoundDesc, float64(now.Bound))
		gauge(poolWantedDesc, now.Wanted)
		p.state.Bounds(func(address string, _, bound int64) { gauge(boundDesc, float64(bound), address) })
		p.state.Weights(func(address string, weight float64) { gauge(weightDesc, weight, address) })
		gauge(memoryDesc, float64(p.state.MemoryBytes()))
		hot := p.state.Hot()
		for _, h := range hot[:min(len(hot), MaxHotPrefixes)] {
			if h.Share >= minHotShare {
				gauge(hotShareDesc, h.Share, h.Hash)
				gauge(hotHomesDesc, float64(h.Homes), h.Hash)
			}
		}
		collectMembership(gauge, p.state.Membership())
	}
}

func collectMembership(gauge func(desc *prometheus.Desc, value float64, labels ...string), m Membership) {
	gauge(ageDesc, m.Age.Seconds(), m.Source)
	if !m.Known {
		return
	}
	gauge(unchangedDesc, m.Unchanged.Seconds())
	gauge(versionDesc, float64(m.Version>>12)) // a number of Prometheus keeps 53 bits exactly
}
