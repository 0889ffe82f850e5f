package main

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/health/prober"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/modelserver"
	"github.com/warmpath/warmpath/internal/rollout"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/trial"
	"github.com/warmpath/warmpath/xds"
)

// defaultPool is what logs and metrics call the pool without a name.
const defaultPool = telemetry.DefaultPool

// pool is one pool at work: a membership that is followed, judged, and told to the
// router and to Envoy.
type pool struct {
	name    string // empty for the default pool
	config  config.Pool
	source  discovery.Source
	log     *slog.Logger
	metrics telemetry.PoolMetrics
	status  *poolStatus

	router  *route.Router
	trials  *trial.Trials
	envoy   *xds.Pool            // nil without a control plane
	prober  *prober.Prober       // nil when health is not judged
	lister  *modelserver.Lister  // nil when endpoints are not asked for their adapters
	scraper *modelserver.Scraper // of all pools; nil when their metrics are not read
	members latest
	// changed is called when the state of the membership has changed.
	changed func()
}

// newPools makes the pools of the configuration, the default one first. All count
// with one tracker, as an endpoint may be in several.
func (p *program) newPools(tracker *load.Tracker) error {
	all := append([]config.NamedPool{{Pool: p.config.Pool}}, p.config.Pools...)
	for _, c := range all {
		one, err := p.newPool(c, tracker)
		if err != nil {
			return err
		}
		p.pools = append(p.pools, one)
	}
	return nil
}

func (p *program) newPool(c config.NamedPool, tracker *load.Tracker) (*pool, error) {
	label := defaultPool
	log := p.log
	if c.Name != "" {
		label, log = c.Name, p.log.With("pool", c.Name)
	}
	source, err := p.sourceOf(c.Membership)
	if err != nil {
		return nil, err
	}
	one := &pool{
		name: c.Name, config: c.Pool, source: source,
		log: log, metrics: p.metrics.OfPool(label), status: newPoolStatus(c.Membership, time.Now()), scraper: p.scraper,
		router:  route.NewRouterCounting(policy(c.RoutingConfig), tracker),
		members: latest{updates: make(chan rollout.Membership, 1)},
		changed: p.tellServing,
	}
	one.router.SetRouters(p.config.Routers, false)
	p.collect(one, label)
	one.router.SetZone(p.config.Zone)
	one.router.SetAdapters(adapterRules(c.Adapters))
	one.trials = trial.New(one.router)
	one.trials.Set(trialSettings(c.Shadow), trialSettings(c.Split))
	p.metrics.CollectTrials(label, one.trials.Report)
	one.list()
	if err := one.judge(); err != nil {
		return nil, err
	}
	return one, nil
}

// run starts all that the pool does until ctx ends.
func (o *pool) run(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return o.follow(ctx) })
	group.Go(func() error {
		o.newRollout().Run(ctx, o.members.updates)
		return nil
	})
	if o.lister != nil {
		group.Go(func() error {
			o.lister.Run(ctx)
			return nil
		})
	}
	if o.prober != nil {
		group.Go(func() error {
			o.prober.Run(ctx)
			return nil
		})
	}
}

// served is the pools as requests find them, with the models and components of a
// configuration.
func (p *program) served(c config.Config) (*extproc.Pools, error) {
	var pools []*extproc.Pool
	for i, one := range p.pools {
		served := &extproc.Pool{Name: one.name, Cluster: one.config.Cluster.Name, Router: one.router, Trials: one.trials}
		if i > 0 {
			served.Models, served.Components = c.Pools[i-1].Models, c.Pools[i-1].Components
		}
		pools = append(pools, served)
	}
	return extproc.NewPools(pools[0], pools[1:]...)
}

// forgotten is how many beginnings of prompts all pools have forgotten.
func (p *program) forgotten() (sum uint64) {
	for _, one := range p.pools {
		sum += one.router.Forgotten()
	}
	return sum
}

// proberOf returns who judges the health of a pool's endpoints, nil if nobody does.
func (p *program) proberOf(name string) *prober.Prober {
	for _, one := range p.pools {
		if one.name == name {
			return one.prober
		}
	}
	return nil
}

// learning is an observer that also tells the probers how requests fare.
type learning struct {
	extproc.Observer
	p *program
}

// Served implements extproc.Observer.
func (l learning) Served(r *extproc.Record) {
	l.Observer.Served(r)
	if prober := l.p.proberOf(r.Pool); prober != nil {
		learn(r, prober.Report)
	}
}
