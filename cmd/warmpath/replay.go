package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

// replayOptions are what every command has that replays a trace.
type replayOptions struct {
	trace, format, model  string
	replicas, cacheTokens int
	speed                 float64
	seed                  uint64
	json                  bool
}

// Bounds of a simulation: its routers, and how much faster than in the trace
// requests may arrive.
const (
	mostRouters = 100
	mostSpeed   = 1e9
)

var engines = map[string]func() engine.Params{
	"llama-70b": engine.Llama70B, "llama-8b": engine.Llama8B, "qwen-32b": engine.Qwen32B, "llama-8b-l4": engine.Llama8BOnL4,
}

func (o *replayOptions) define(flags *flag.FlagSet) {
	flags.StringVar(&o.trace, "trace", "", "trace `file`, or a folder of one trace's files")
	flags.StringVar(&o.format, "format", "mooncake", "`format` of the trace: "+strings.Join(trace.Formats(), ", "))
	flags.IntVar(&o.replicas, "replicas", 8, "`number` of replicas, 1..1000")
	flags.IntVar(&o.cacheTokens, "cache-tokens", 0, "`tokens` in each replica's KV cache (default the model's)")
	flags.Float64Var(&o.speed, "speed", 1, "`factor` by which requests arrive faster than in the trace")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of what is random")
	flags.StringVar(&o.model, "model", "llama-70b", "`model` of the replicas: llama-70b, llama-8b, llama-8b-l4, qwen-32b")
	flags.BoolVar(&o.json, "json", false, "print JSON")
}

// engine checks the options and returns the replicas' parameters.
func (o *replayOptions) engine() (p engine.Params, err error) {
	preset, ok := engines[o.model]
	switch {
	case o.trace == "":
		return p, errors.New("want --trace FILE")
	case !ok:
		return p, fmt.Errorf("--model %q: want llama-70b, llama-8b, llama-8b-l4 or qwen-32b", o.model)
	case o.replicas < 1 || o.replicas > 1000:
		return p, fmt.Errorf("--replicas %d: want 1..1000", o.replicas)
	case !(o.speed >= 1e-6 && o.speed <= mostSpeed): // nor NaN
		return p, fmt.Errorf("--speed %v: want 0.000001..%.0f", o.speed, mostSpeed)
	case o.cacheTokens != 0 && o.cacheTokens < sim.ChunkTokens:
		return p, fmt.Errorf("--cache-tokens %d: want %d or more", o.cacheTokens, sim.ChunkTokens)
	}
	p = preset()
	if o.cacheTokens > 0 {
		p.KVTokens = o.cacheTokens
	}
	return p, nil
}

// replay is a trace that is ready to be replayed.
type replay struct {
	trace    trace.Trace
	jobs     []sim.Job
	engine   engine.Params
	seed     uint64
	progress io.Writer
	// gossip is how often routers tell each other of their loads, 0 for never.
	gossip time.Duration
}

// open reads the trace. The options have been checked.
func (o *replayOptions) open(read trace.Options, progress io.Writer) (*replay, error) {
	p, err := o.engine()
	if err != nil {
		return nil, err
	}
	t, err := trace.Open(o.trace, o.format, read)
	if err != nil {
		return nil, err
	}
	r := &replay{trace: t, engine: p, seed: o.seed, progress: progress}
	var cut int
	if r.jobs, cut = jobsOf(t, p.KVTokens); cut > 0 {
		r.trace.Notes = append(r.trace.Notes, fmt.Sprintf("%d requests are longer than the cache and were cut to it", cut))
	}
	return r, nil
}

// run simulates one policy. It tells of its progress when it takes long.
func (r *replay) run(name string, maker sim.Maker, replicas, routers int, speed float64) (sim.Result, error) {
	fleet := make([]sim.Replica, replicas)
	for i := range fleet {
		fleet[i].Params = r.engine
	}
	told := time.Now()
	return sim.Run(sim.Config{
		Jobs: r.jobs, Replicas: fleet, Routers: routers, Policy: maker, Speed: speed, Seed: r.seed, Gossip: r.gossip,
		Progress: func(done, of int) {
			if time.Since(told) > 2*time.Second {
				told = time.Now()
				fmt.Fprintf(r.progress, "%s, %d replicas, %d routers: %d of %d requests\n", name, replicas, routers, done, of)
			}
		},
	})
}

// jobsOf makes the requests of a trace jobs, and counts those that had to be cut to
// the cache.
func jobsOf(t trace.Trace, cache int) (jobs []sim.Job, cut int) {
	jobs = make([]sim.Job, len(t.Requests))
	for i, r := range t.Requests {
		j, shorter := sim.NewJob(i, r.Arrival, r.Input, r.Output, r.Chunks, cache)
		if shorter {
			cut++
		}
		jobs[i] = j
	}
	return jobs, cut
}
