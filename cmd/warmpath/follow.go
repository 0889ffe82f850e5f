package main

import (
	"context"
	"fmt"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/rollout"
)

// follow passes each good membership on, through the judgement of its health if
// there is one, and tells of bad ones.
func (p *program) follow(ctx context.Context, updates chan rollout.Membership) error {
	return ended(p.source.Run(ctx, func(u discovery.Update) {
		p.status.sourced(u)
		if u.Err != nil || len(u.Problems) > 0 {
			p.metrics.MembershipErrors.Inc()
		}
		if u.Err != nil {
			p.log.Error("membership not taken over", "error", u.Err)
			return
		}
		for _, problem := range u.Problems {
			p.log.Error("membership entry left out", "error", problem)
		}
		if len(u.Kept) > 0 {
			p.log.Warn("endpoints keep their earlier entries", "endpoints", u.Kept)
		}
		if u.Warning != "" {
			p.log.Warn("the membership is odd", "warning", u.Warning)
		}
		p.log.Info("membership read", "endpoints", u.Set.Len(), "version", fmt.Sprintf("%016x", u.Set.Version()))
		if p.prober != nil {
			p.prober.SetMembers(u.Set)
		} else {
			offer(updates, rollout.Membership{Router: u.Set, Envoy: u.Set})
		}
		p.setServing(true)
	}))
}

// offer puts the membership in the place of one that was not taken yet. The
// channel has one sender and a buffer of 1.
func offer(updates chan rollout.Membership, m rollout.Membership) {
	select {
	case <-updates:
	default:
	}
	updates <- m
}

func (p *program) newRollout() *rollout.Rollout {
	var envoy rollout.ControlPlane
	if p.xds != nil {
		envoy = p.xds
	}
	return rollout.New(rollout.Options{DrainTimeout: p.config.Membership.DrainTimeout}, envoy, members{p}, func(s rollout.Status) {
		p.status.rolledOut(s)
		p.metrics.Leaving.Set(float64(len(s.Draining)))
		p.metrics.Unacknowledged.Set(0)
		if s.Err != nil {
			p.metrics.Unacknowledged.Set(1)
			p.log.Warn("the membership is not in use everywhere", "error", s.Err)
		}
	})
}

// members is the router as the rollout sees it.
type members struct{ p *program }

// SetMembership implements rollout.Router.
func (m members) SetMembership(set fleet.Set) {
	m.p.router.SetMembership(set)
	counts := map[fleet.State]int{fleet.Healthy: 0, fleet.Unhealthy: 0, fleet.Draining: 0}
	for i := range set.Len() {
		counts[set.At(i).State]++
	}
	for state, n := range counts {
		m.p.metrics.Endpoints.WithLabelValues(state.String()).Set(float64(n))
	}
}

// Outstanding implements rollout.Router.
func (m members) Outstanding(address string) int64 {
	counter, ok := m.p.router.Loads().Lookup(address)
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
		effective, restart := p.config.Reload(next)
		s, err := p.settings(effective, generation+1)
		if err != nil {
			p.metrics.ConfigErrors.Inc()
			p.status.configured(generation, err)
			p.log.Error("configuration not taken over", "error", err)
			return
		}
		generation++
		p.router.SetPolicy(policy(effective.RoutingConfig))
		p.router.SetRouters(effective.Routers)
		p.extproc.SetSettings(s)
		p.level.Set(logLevel(effective.Log.Level))
		p.metrics.ConfigGeneration.Set(float64(generation))
		p.status.configured(generation, nil)
		p.log.Info("configuration taken over", "generation", generation, "strategy", effective.RoutingConfig.RoutingStrategy)
		if len(restart) > 0 {
			p.log.Warn("these changes take effect at a restart", "paths", restart)
		}
	})
}
