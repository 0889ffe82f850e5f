package main

import (
	"sync"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/modelserver"
	"github.com/warmpath/warmpath/internal/rollout"
)

// latest is a pool's membership on its way to the rollout: what the source and the
// judgement of health make of it, and the adapters that the endpoints say they have.
type latest struct {
	updates chan rollout.Membership // with room for one

	mu       sync.Mutex
	any      bool
	base     rollout.Membership
	adapters map[string]fleet.Names
}

func (l *latest) set(m rollout.Membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base, l.any = m, true
	l.offer()
}

func (l *latest) setAdapters(adapters map[string]fleet.Names) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapters = adapters
	if l.any {
		l.offer()
	}
}

// offer puts the membership in the place of one that was not taken yet. l.mu is
// held, so that nobody else sends.
func (l *latest) offer() {
	m := rollout.Membership{
		Router: withAdapters(l.base.Router, func(e fleet.Endpoint) fleet.Names { return e.Adapters.And(l.adapters[e.Address]) }),
		// Envoy has no use for them, and is told nothing when they change.
		Envoy: withAdapters(l.base.Envoy, func(fleet.Endpoint) fleet.Names { return "" }),
	}
	select {
	case <-l.updates:
	default:
	}
	l.updates <- m
}

// withAdapters returns the set with other adapters, or the set itself.
func withAdapters(set fleet.Set, of func(fleet.Endpoint) fleet.Names) fleet.Set {
	endpoints := set.Endpoints()
	differs := false
	for i, e := range endpoints {
		endpoints[i].Adapters = of(e)
		differs = differs || endpoints[i].Adapters != e.Adapters
	}
	if !differs {
		return set
	}
	set, _ = fleet.NewSet(endpoints)
	return set
}

// list starts to ask the endpoints for their adapters, if the configuration wants
// that.
func (o *pool) list() {
	refresh := o.config.Adapters.Refresh
	if refresh == 0 {
		return
	}
	o.lister = modelserver.NewLister(refresh, func(adapters map[string]fleet.Names) {
		for address, names := range adapters {
			o.log.Debug("adapters of an endpoint", "endpoint", address, "adapters", len(names.All()))
		}
		o.members.setAdapters(adapters)
	})
	o.lister.Failed = func(address string, err error) {
		o.log.Debug("an endpoint was asked for its adapters in vain", "endpoint", address, "error", err)
	}
}
