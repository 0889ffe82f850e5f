package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
)

// instances is how many there were in the announcement.
const instances = 7

// connections bounds the requests in flight of an open loop.
const connections = 512

// binaries are the programs that are measured.
type binaries struct{ envoy, warmpath string }

// system is Envoy, warmpath and the replicas.
type system struct {
	stack  *stack.Stack
	scale  scale
	sender *load.Wire
	config stack.Config // the one in force
}

// start starts everything. dir is for files.
func start(ctx context.Context, b binaries, dir string, s scale) (*system, error) {
	config := stack.Config{Strategy: random}
	running, err := stack.Start(ctx, stack.Options{
		Warmpath: []string{b.warmpath}, Envoy: b.envoy, Dir: dir, Replicas: instances,
		Replica: replica.Params{Engine: engine.Llama70B(), TimeScale: s.timeScale}, Config: config,
	})
	if err != nil {
		return nil, err
	}
	sender := load.NewWire(strings.TrimPrefix(running.URL, "http://"), connections)
	return &system{stack: running, scale: s, sender: sender, config: config}, nil
}

func (s *system) close() error {
	s.sender.Close()
	return s.stack.Close()
}

// use switches to a strategy and empties the caches.
func (s *system) use(ctx context.Context, strategy string, prefixLength int) error {
	want := stack.Config{Strategy: strategy, PrefixLength: prefixLength}
	if strategy == autoAware {
		want = stack.Config{Strategy: aware, PrefixLength: route.AutoPrefixLength}
	}
	if want != s.config { // an equal file would not be taken over
		if err := s.stack.SetConfig(ctx, want); err != nil {
			return fmt.Errorf("switch to %s: %w", strategy, err)
		}
		s.config = want
	}
	s.stack.Replicas.ClearCaches()
	return nil
}

// atOnce returns a client whose requests the replicas answer with one token, at
// once and outside the engine.
func (s *system) atOnce() *load.Client {
	return load.NewClient(s.stack.URL, connections, http.Header{
		"X-Replica-First-Token-Ms": {"0"}, "X-Replica-Tokens": {"1"},
	})
}

// passedOver is how many requests Envoy has routed without warmpath, because that
// was too slow or not there.
func (s *system) passedOver(ctx context.Context) (int, error) {
	return s.stack.PassedOver(ctx)
}
