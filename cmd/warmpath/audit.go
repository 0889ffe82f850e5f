package main

import (
	"context"
	"time"
)

// auditInterval and auditSamples: the endpoints' counts and the requests that hold
// a slot are not read at the same instant, so only a surplus that every sample of
// half a minute has is one.
const (
	auditInterval = time.Second
	auditSamples  = 30
)

// audit compares the endpoints' counts with the requests that hold a slot, until
// ctx ends, and counts what is too much. It gives nothing back: a slot that is given
// back by guess may be one in use.
func (p *program) audit(ctx context.Context) {
	ticker := time.NewTicker(auditInterval)
	defer ticker.Stop()
	a := auditor{least: make([]int64, 0, auditSamples)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		outstanding := int64(0)
		for _, c := range p.loads.Snapshot() {
			outstanding += c.Outstanding
		}
		if leaked := a.sample(outstanding - p.extproc.Holding()); leaked > 0 {
			p.metrics.Leaked.Add(float64(leaked))
			p.log.Error("slots were not given back: a defect of warmpath; restart it when it suits", "slots", leaked)
		}
	}
}

// auditor finds a lasting surplus.
type auditor struct {
	least []int64 // the samples of this round
	known int64   // the surplus that has been told of
}

// sample takes a surplus and returns what has become of it that was not known.
func (a *auditor) sample(surplus int64) (leaked int64) {
	a.least = append(a.least, surplus)
	if len(a.least) < cap(a.least) {
		return 0
	}
	lasting := a.least[0]
	for _, n := range a.least {
		lasting = min(lasting, n)
	}
	a.least = a.least[:0]
	leaked = max(lasting-a.known, 0)
	a.known = max(a.known, lasting)
	return leaked
}
