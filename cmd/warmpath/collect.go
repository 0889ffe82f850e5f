package main

import (
	"time"

	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/telemetry"
)

// collect has the metrics ask for the state of a pool at each scrape.
func (p *program) collect(one *pool, label string) {
	p.metrics.Collect(label, telemetry.PoolState{
		Demand: one.router.Demand, Bounds: one.router.Bounds, Weights: one.router.Weights, MemoryBytes: one.router.MemoryBytes,
		Hot:        func() []telemetry.HotPrefix { return p.hot(one) },
		Membership: func() telemetry.Membership { return one.status.membership(time.Now()) },
	})
}

// hot are the hot prefixes that the live page shows, by other names: who reads metrics
// need not be who may look at the page.
func (p *program) hot(one *pool) []telemetry.HotPrefix {
	found := p.live.Hot(live.Pool{Name: one.name, Router: one.router}, time.Now())
	list := make([]telemetry.HotPrefix, 0, telemetry.MaxHotPrefixes)
	for _, h := range found[:min(len(found), telemetry.MaxHotPrefixes)] {
		list = append(list, telemetry.HotPrefix{Hash: p.salt.Prefix(h.Key), Share: h.Share, Homes: h.Homes})
	}
	return list
}
