package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

const simulateUsage = `usage: warmpath simulate --trace FILE [options]

Replays a trace on simulated replicas, once for each policy and number of routers,
and compares cache hits, times to the first token and balance. Virtual time, the
same seed gives the same result.

`

// simulateOptions are the command line's.
type simulateOptions struct {
	trace, format, policies, routers, model string
	replicas, cacheTokens, threshold        int
	speed                                   float64
	seed                                    uint64
	json                                    bool
}

var engines = map[string]func() engine.Params{
	"llama-70b": engine.Llama70B, "llama-8b": engine.Llama8B, "qwen-32b": engine.Qwen32B, "llama-8b-l4": engine.Llama8BOnL4,
}

func simulate(args []string, stdout, stderr io.Writer) error {
	var o simulateOptions
	flags := flag.NewFlagSet("warmpath simulate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.trace, "trace", "", "trace `file`, or a folder of one trace's files")
	flags.StringVar(&o.format, "format", "mooncake", "`format` of the trace: "+strings.Join(trace.Formats(), ", "))
	flags.IntVar(&o.replicas, "replicas", 8, "`number` of replicas, 1..1000")
	flags.IntVar(&o.cacheTokens, "cache-tokens", 0, "`tokens` in each replica's KV cache (default the model's)")
	flags.StringVar(&o.policies, "policy", "auto,prefix:4096,least_outstanding,random", "comma-separated `policies`")
	flags.StringVar(&o.routers, "routers", "1", "`numbers` of routers that do not know of each other, comma-separated, 1..100")
	flags.IntVar(&o.threshold, "concurrency-threshold", 0, "`requests` outstanding at a replica at most, by warmpath's policies; 0 is auto")
	flags.Float64Var(&o.speed, "speed", 1, "`factor` by which requests arrive faster than in the trace")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of what is random")
	flags.StringVar(&o.model, "model", "llama-70b", "`model` of the replicas: llama-70b, llama-8b, llama-8b-l4, qwen-32b")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, simulateUsage)
		flags.PrintDefaults()
		_, _ = io.WriteString(stderr, "\nPolicies:\n"+sim.Names())
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("simulate: unexpected argument %q", flags.Arg(0))}
	}
	results, err := o.run(stderr)
	if err != nil {
		return err
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	return results.print(stdout)
}

// simulation is one run's parameters, checked.
type simulation struct {
	simulateOptions
	engine   engine.Params
	policies []string
	makers   []sim.Maker
	routers  []int
}

func (o simulateOptions) check() (s simulation, err error) {
	s = simulation{simulateOptions: o}
	preset, ok := engines[o.model]
	switch {
	case o.trace == "":
		return s, errors.New("simulate: want --trace FILE")
	case !ok:
		return s, fmt.Errorf("simulate: --model %q: want llama-70b, llama-8b, llama-8b-l4 or qwen-32b", o.model)
	case o.replicas < 1 || o.replicas > 1000:
		return s, fmt.Errorf("simulate: --replicas %d: want 1..1000", o.replicas)
	case !(o.speed >= 1e-6 && o.speed <= 1e9): // nor NaN
		return s, fmt.Errorf("simulate: --speed %v: want 0.000001..1000000000", o.speed)
	case o.cacheTokens != 0 && o.cacheTokens < sim.ChunkTokens:
		return s, fmt.Errorf("simulate: --cache-tokens %d: want %d or more", o.cacheTokens, sim.ChunkTokens)
	case o.threshold < 0 || o.threshold > 1024:
		return s, fmt.Errorf("simulate: --concurrency-threshold %d: want 1..1024, or 0 for auto", o.threshold)
	}
	s.engine = preset()
	if o.cacheTokens > 0 {
		s.engine.KVTokens = o.cacheTokens
	}
	for _, name := range strings.Split(o.policies, ",") {
		maker, err := sim.Named(strings.TrimSpace(name), sim.Options{Engine: s.engine, ConcurrencyThreshold: o.threshold})
		if err != nil {
			return s, fmt.Errorf("simulate: %w; there are\n%s", err, sim.Names())
		}
		s.policies, s.makers = append(s.policies, strings.TrimSpace(name)), append(s.makers, maker)
	}
	for _, word := range strings.Split(o.routers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 100 {
			return s, fmt.Errorf("simulate: --routers %q: want numbers of 1..100", o.routers)
		}
		s.routers = append(s.routers, n)
	}
	return s, nil
}

func (o simulateOptions) run(progress io.Writer) (*simulated, error) {
	s, err := o.check()
	if err != nil {
		return nil, usageError{err}
	}
	t, err := trace.Open(o.trace, o.format, trace.Options{})
	if err != nil {
		return nil, usageError{err}
	}
	jobs, cut := jobsOf(t, s.engine.KVTokens)
	results := &simulated{
		Trace: t.Name, Format: o.format, Requests: len(jobs), Replicas: o.replicas, CacheTokens: s.engine.KVTokens,
		Model: o.model, Speed: o.speed, Seed: o.seed, Notes: t.Notes,
	}
	if cut > 0 {
		results.Notes = append(results.Notes, fmt.Sprintf("%d requests are longer than the cache and were cut to it", cut))
	}
	replicas := make([]sim.Replica, o.replicas)
	for i := range replicas {
		replicas[i].Params = s.engine
	}
	for _, routers := range s.routers {
		for i, maker := range s.makers {
			begin := time.Now()
			told := begin
			r, err := sim.Run(sim.Config{
				Jobs: jobs, Replicas: replicas, Routers: routers, Policy: maker, Speed: o.speed, Seed: o.seed,
				Progress: func(done, of int) {
					if time.Since(told) > 2*time.Second {
						told = time.Now()
						fmt.Fprintf(progress, "%s, %d routers: %d of %d requests\n", s.policies[i], routers, done, of)
					}
				},
			})
			if err != nil {
				return nil, fmt.Errorf("simulate %s: %w", s.policies[i], err)
			}
			results.Results = append(results.Results, resultOf(s.policies[i], routers, &r))
		}
	}
	return results, nil
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
