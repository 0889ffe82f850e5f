package main

import (
	"context"
	"fmt"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/rollout"
)

// follow passes each good membership on, through the judgement of its health if
// there is one, and tells of bad ones.
func (o *pool) follow(ctx context.Context) error {
	said := "" // of an error that goes on, once
	return ended(o.source.Run(ctx, func(u discovery.Update) {
		o.status.sourced(u)
		if u.Err != nil || len(u.Problems) > 0 {
			o.metrics.MembershipErrors.Inc()
		}
		if u.Err != nil {
			if text := u.Err.Error(); text != said {
				said = text
				o.log.Error("membership not taken over", "error", u.Err)
			}
			o.changed()
			return
		}
		said = ""
		for _, problem := range u.Problems {
			o.log.Error("membership entry left out", "error", problem)
		}
		if len(u.Kept) > 0 {
			o.log.Warn("endpoints keep their earlier entries", "endpoints", u.Kept)
		}
		if u.Warning != "" {
			o.log.Warn("the membership is odd", "warning", u.Warning)
		}
		o.log.Info("membership read", "endpoints", u.Set.Len(), "version", fmt.Sprintf("%016x", u.Set.Version()))
		if o.prober != nil {
			o.prober.SetMembers(u.Set)
		} else {
			o.members.set(rollout.Membership{Router: u.Set, Envoy: u.Set})
		}
		if o.lister != nil {
			o.lister.SetMembers(u.Set)
		}
		if o.scraper != nil {
			o.scraper.SetPool(o.name, u.Set)
		}
		o.changed()
	}))
}

func (o *pool) newRollout() *rollout.Rollout {
	var envoy rollout.ControlPlane
	if o.envoy != nil {
		envoy = o.envoy
	}
	return rollout.New(rollout.Options{DrainTimeout: o.config.Membership.DrainTimeout}, envoy, members{o}, func(s rollout.Status) {
		o.status.rolledOut(s)
		o.changed()
		o.metrics.Leaving.Set(float64(len(s.Draining)))
		o.metrics.Unacknowledged.Set(0)
		if s.Err != nil {
			o.metrics.Unacknowledged.Set(1)
			o.log.Warn("the membership is not in use everywhere", "error", s.Err)
		}
	})
}

// members is the router as the rollout sees it.
type members struct{ o *pool }

// SetMembership implements rollout.Router.
func (m members) SetMembership(set fleet.Set) {
	m.o.router.SetMembership(set)
	counts := make(map[fleet.State]int)
	for i := range set.Len() {
		counts[set.At(i).State]++
	}
	m.o.metrics.SetEndpoints(counts)
}

// Outstanding implements rollout.Router.
func (m members) Outstanding(address string) int64 {
	counter, ok := m.o.router.Loads().Lookup(address)
	if !ok {
		return 0
	}
	return counter.Outstanding()
}

// watchConfig applies changes of the configuration file while serving.
func (p *program) watchConfig(ctx context.Context) error {
	generation := 1
	return config.Watch(ctx, watch.File{Path: p.path}, p.data, func(next config.Config, err error) {
		if err != nil {
			p.metrics.ConfigErrors.Inc()
			p.status.configured(generation, err)
			p.log.Error("configuration not taken over, the last good one stays", "error", err)
			return
		}
		taken, restart := p.config.Reload(next)
		s, err := p.settings(taken, generation+1)
		var pools *extproc.Pools
		if err == nil {
			pools, err = p.served(taken)
		}
		if err != nil {
			p.metrics.ConfigErrors.Inc()
			p.status.configured(generation, err)
			p.log.Error("configuration not taken over", "error", err)
			return
		}
		generation++
		p.setPolicies(taken)
		p.extproc.SetPools(pools)
		p.extproc.SetSettings(s)
		p.effective.Store(&effective{taken, generation})
		p.level.Set(logLevel(taken.Log.Level))
		p.metrics.ConfigGeneration.Set(float64(generation))
		p.status.configured(generation, nil)
		p.log.Info("configuration taken over", "generation", generation, "strategy", taken.RoutingConfig.RoutingStrategy)
		if len(restart) > 0 {
			p.log.Warn("these changes take effect at a restart", "paths", restart)
		}
	})
}

// setPolicies gives each pool its policy and rules. The pools are those of the start.
func (p *program) setPolicies(c config.Config) {
	for i, pool := range append([]config.NamedPool{{Pool: c.Pool}}, c.Pools...) {
		p.pools[i].router.SetPolicy(policy(pool.RoutingConfig))
		p.pools[i].router.SetAdapters(adapterRules(pool.Adapters))
		p.pools[i].trials.Set(trialSettings(pool.Shadow), trialSettings(pool.Split))
	}
	p.routers.Store(int64(c.Routers)) // which gossip adds to
	for _, one := range p.pools {
		if p.gossip == nil {
			one.router.SetRouters(c.Routers, false)
		}
		one.router.SetZone(c.Zone)
	}
}
