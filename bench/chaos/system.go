package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/warmpath/warmpath/bench/chaos/link"
	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
)

// binaries are the programs under test.
type binaries struct{ envoy, warmpath string }

// system is Envoy, warmpath, the replicas, and the links from the first to the
// second.
type system struct {
	stack *stack.Stack
	dir   string
	// health is that block of the configuration.
	health string
	// decisions and control are the links by which Envoy reaches warmpath.
	decisions, control *link.Link
}

// start starts everything. dir is for files.
func start(ctx context.Context, b binaries, dir, health string) (_ *system, err error) {
	s := &system{dir: dir, health: health}
	s.stack, err = stack.Start(ctx, stack.Options{
		Warmpath: []string{b.warmpath}, Envoy: b.envoy, Dir: dir, Replicas: replicas,
		Replica: replica.Params{Engine: engine.Llama70B(), TimeScale: 1000, OutputTokens: 4},
		Config:  s.configure(new(scenario), strategies[0]), Bootstrap: traffic.Reveal, Between: s.between,
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// between puts the links between Envoy and warmpath, the same for every Envoy.
func (s *system) between(a envoy.Addresses) (_ envoy.Addresses, err error) {
	if s.decisions == nil {
		if s.decisions, err = link.New(a.ExtProc); err != nil {
			return a, err
		}
		if s.control, err = link.New(a.XDS); err != nil {
			return a, err
		}
	}
	a.ExtProc, a.XDS = s.decisions.Address(), s.control.Address()
	return a, nil
}

func (s *system) close() error {
	var errs []error
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	for _, l := range []*link.Link{s.decisions, s.control} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// folder is where a scenario records.
func (s *system) folder() string { return filepath.Join(s.dir, "recordings") }

// renew starts a new warmpath, with nothing that the one before it knew.
func (s *system) renew(ctx context.Context, sc *scenario, c stack.Config) error {
	s.stack.Warmpath.Kill()
	return inOrder(
		func() error { return s.stack.Configure(s.configure(sc, c)) },
		func() error { return s.stack.StartWarmpath(ctx) },
		func() error { return s.whole(ctx) },
	)
}

// use switches to a strategy while everything runs.
func (s *system) use(ctx context.Context, sc *scenario, c stack.Config) error {
	return s.stack.SetConfig(ctx, s.configure(sc, c))
}

// whole waits until all replicas are healthy members that requests are steered to.
func (s *system) whole(ctx context.Context) error {
	return inOrder(
		func() error { return s.stack.AwaitRouting(ctx) },
		func() error {
			return s.stack.Await(ctx, "all endpoints in Envoy", func() error { return s.stack.EnvoyKnows(ctx, replicas) })
		},
		func() error { return s.stack.AwaitSteering(ctx) },
		func() error {
			return s.stack.Await(ctx, "all endpoints to be healthy", func() error { return s.healthy(ctx) })
		},
	)
}

func (s *system) healthy(ctx context.Context) error {
	status, err := s.stack.Status(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range status.Endpoints {
		if e.State == fleet.Healthy.String() {
			n++
		}
	}
	if n != replicas || len(status.Endpoints) != replicas {
		return fmt.Errorf("%d of %d are healthy", n, len(status.Endpoints))
	}
	return nil
}

// tempDir makes a folder for files, and what removes it.
func tempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "warmpath-chaos-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
