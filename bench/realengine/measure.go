package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
)

// measurement is a run: what it needs, and what it has found.
type measurement struct {
	binaries   binaries
	dir, model string
	addresses  []string // of the engines
	workload   workload
	progress   io.Writer

	roundRobin, warmpath outcomes
	bursts               []outcomes // in the order of the workload's
	told                 told
	passedOver           int
}

// outcomes are those of the requests that were sent together, in the order in which
// they ended, and how long all took.
type outcomes struct {
	all     []load.Outcome
	elapsed time.Duration
}

// told are tokens as warmpath knows them: read of the answers in passing, and of the
// engines' own metrics.
type told struct{ readCached, readPrompt, engineHits, engineQueries float64 }

// measure runs the arms one after the other, each with empty caches.
func (m *measurement) measure(ctx context.Context) error {
	fmt.Fprintf(m.progress, "%d requests, Envoy's round robin ...\n", len(m.workload.requests))
	if err := m.withEngines(ctx, m.measurePlain); err != nil {
		return fmt.Errorf("round robin: %w", err)
	}
	fmt.Fprintf(m.progress, "the same in %.0f s; now by prefix ...\n", m.roundRobin.elapsed.Seconds())
	if err := m.withEngines(ctx, m.measureWarmpath); err != nil {
		return fmt.Errorf("PREFIX_AWARE: %w", err)
	}
	return nil
}

// withEngines runs an arm with engines of its own.
func (m *measurement) withEngines(ctx context.Context, arm func(context.Context) error) error {
	e, err := startEngines(ctx, m.binaries.llamaServer, m.model, m.addresses)
	if err != nil {
		return err
	}
	return errors.Join(arm(ctx), e.stop())
}

func (m *measurement) measurePlain(ctx context.Context) (err error) {
	e, err := startPlainEnvoy(ctx, m.binaries.envoy, m.dir, m.addresses)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.process.Stop(15*time.Second)) }()
	m.roundRobin, err = send(ctx, e.url, m.workload.requests, 1)
	return err
}

// config is that of warmpath, with a threshold.
func config(threshold int) stack.Config {
	return stack.Config{
		Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength, ConcurrencyThreshold: threshold,
		Extra: "cluster: {maxRequestsPerConnection: 1}\nengineMetrics: {interval: 1s}",
	}
}

func (m *measurement) measureWarmpath(ctx context.Context) (err error) {
	s, err := stack.Start(ctx, stack.Options{
		Warmpath: []string{m.binaries.warmpath}, Envoy: m.binaries.envoy, Dir: m.dir, Servers: m.addresses,
		Bootstrap: withReplicaHeader, Inspect: 1, Config: config(0),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if m.warmpath, err = send(ctx, s.URL, m.workload.requests, 1); err != nil {
		return err
	}
	if m.told, err = ask(ctx, s, m.warmpath); err != nil {
		return err
	}
	for _, b := range m.workload.bursts {
		fmt.Fprintf(m.progress, "a burst with concurrencyThreshold %s ...\n", b.name())
		o, err := sendBurst(ctx, s, b)
		if err != nil {
			return fmt.Errorf("burst with concurrencyThreshold %s: %w", b.name(), err)
		}
		m.bursts = append(m.bursts, o)
	}
	m.passedOver, err = s.PassedOver(ctx)
	return err
}

// sendBurst warms a prefix with one request and sends the others at once.
func sendBurst(ctx context.Context, s *stack.Stack, b burst) (outcomes, error) {
	if err := s.SetConfig(ctx, config(b.threshold)); err != nil {
		return outcomes{}, err
	}
	first, err := send(ctx, s.URL, []load.Request{b.first}, 1)
	if err != nil {
		return outcomes{}, err
	}
	rest, err := send(ctx, s.URL, b.rest, len(b.rest))
	if bad := first.all[0].Err; err == nil && bad != "" {
		err = fmt.Errorf("the request that warms the prefix failed: %s", bad)
	}
	return rest, err
}

// send sends requests in a closed loop.
func send(ctx context.Context, url string, requests []load.Request, concurrency int) (o outcomes, err error) {
	client := load.NewClient(url, concurrency, nil)
	defer client.Close()
	result, err := load.Run(ctx, client, requests, load.Load{Concurrency: concurrency, Observe: func(one load.Outcome) { o.all = append(o.all, one) }})
	if err == nil {
		o.elapsed = result.Elapsed
	}
	return o, err
}

// ask has warmpath tell of the tokens, once it has read all answers and the engines'
// metrics after them.
func ask(ctx context.Context, s *stack.Stack, sent outcomes) (t told, err error) {
	prompt := 0
	for _, o := range sent.all {
		prompt += o.PromptTokens
	}
	err = s.Await(ctx, "warmpath to know the tokens of all requests", func() error {
		for _, f := range []struct {
			name string
			to   *float64
		}{
			// What is known to be complete comes first: what is asked after it is too.
			{"warmpath_inspected_prompt_tokens_total", &t.readPrompt},
			{"warmpath_engine_prefix_cache_queries_total", &t.engineQueries},
			{"warmpath_inspected_cached_tokens_total", &t.readCached},
			{"warmpath_engine_prefix_cache_hits_total", &t.engineHits},
		} {
			if *f.to, err = s.Metric(ctx, f.name); err != nil {
				return err
			}
		}
		if t.readPrompt < float64(prompt) || t.engineQueries < float64(prompt) {
			return fmt.Errorf("%v and %v of %d", t.readPrompt, t.engineQueries, prompt)
		}
		return nil
	})
	return t, err
}
