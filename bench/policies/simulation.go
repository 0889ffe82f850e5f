package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/internal/sim"
)

// setting is one simulation. What is not set is that of the workload.
type setting struct {
	workload *workload
	policy   string
	jobs     []sim.Job
	seed     uint64
	fleet    []sim.Replica
	speed    float64
	routers  int
	clients  int // a closed loop of so many
	// threshold is warmpath's concurrencyThreshold, 0 is auto.
	threshold int
	events    []sim.Event
	window    time.Duration
	// check has every decision checked against the bound; warmpath's policies with
	// one router only.
	check  bool
	picked func(now time.Duration, j *sim.Job, c sim.Choice)
}

// outcome is what came of it.
type outcome struct {
	result    sim.Result
	overBound int
	// outstanding is the mean at a replica.
	outstanding float64
}

// run simulates.
func (s setting) run() (outcome, error) {
	maker, err := sim.Named(s.policy, sim.Options{Engine: s.fleet[0].Params, ConcurrencyThreshold: s.threshold})
	if err != nil {
		return outcome{}, err
	}
	o := &observer{threshold: -1, picked: s.picked}
	if s.check {
		o.threshold = s.threshold
	}
	r, err := sim.Run(sim.Config{
		Jobs: s.jobs, Replicas: s.fleet, Events: s.events, Routers: max(s.routers, 1), Policy: o.watch(maker),
		Clients: s.clients, Speed: s.speed, Seed: s.seed, Window: s.window,
	})
	if err != nil {
		return outcome{}, fmt.Errorf("%s with %s: %w", s.workload.Name, s.policy, err)
	}
	return outcome{r, o.overBound, o.mean() / float64(len(s.fleet))}, nil
}

// of returns a setting with what the workload says.
func (w *workload) of(policy string, jobs []sim.Job, seed uint64) setting {
	return setting{workload: w, policy: policy, jobs: jobs, seed: seed, fleet: equalFleet(w, w.Replicas), speed: w.Speed}
}

func equalFleet(w *workload, n int) []sim.Replica {
	fleet := make([]sim.Replica, n)
	for i := range fleet {
		fleet[i].Params = w.params
	}
	return fleet
}

// atOnce is how many simulations run at a time.
const atOnce = 2

// simulator runs settings.
type simulator struct {
	ctx      context.Context
	progress io.Writer
	begin    time.Time

	lock sync.Mutex // of what is below
	told time.Time
	done int
}

// all runs settings and returns their outcomes in the same order. It stops at the
// first error or when the context ends.
func (s *simulator) all(settings []setting) ([]outcome, error) {
	outcomes := make([]outcome, len(settings))
	group, ctx := errgroup.WithContext(s.ctx)
	group.SetLimit(atOnce)
	for i, x := range settings {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			outcomes[i], err = x.run()
			s.tell(x)
			return err
		})
	}
	return outcomes, group.Wait()
}

// tell says every few seconds how far it is.
func (s *simulator) tell(last setting) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.done++
	if now := time.Now(); now.Sub(s.told) > 5*time.Second {
		s.told = now
		fmt.Fprintf(s.progress, "%v: %d simulations, the last %s with %s\n", now.Sub(s.begin).Round(time.Second), s.done, last.workload.Name, last.policy)
	}
}
