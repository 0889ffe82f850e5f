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
	replayOptions
	policies, routers string
	threshold         int
	gossip            time.Duration
}

func simulate(args []string, stdout, stderr io.Writer) error {
	var o simulateOptions
	flags := flag.NewFlagSet("warmpath simulate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.define(flags)
	flags.StringVar(&o.policies, "policy", "auto,prefix:4096,least_outstanding,random", "comma-separated `policies`")
	flags.StringVar(&o.routers, "routers", "1", "`numbers` of routers, which do not know of each other without --gossip, comma-separated, 1..100")
	flags.DurationVar(&o.gossip, "gossip", 0, "`interval` at which the routers tell each other of their loads, as with gossip.listen (50ms); 0 for never")
	flags.IntVar(&o.threshold, "concurrency-threshold", 0, "`requests` outstanding at a replica at most, by warmpath's policies; 0 is auto")
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
	policies []string
	makers   []sim.Maker
	routers  []int
}

func (o simulateOptions) check() (s simulation, err error) {
	if o.threshold < 0 || o.threshold > 1024 {
		return s, fmt.Errorf("--concurrency-threshold %d: want 1..1024, or 0 for auto", o.threshold)
	}
	if o.gossip < 0 || o.gossip > time.Minute {
		return s, fmt.Errorf("--gossip %s: want 0..1m", o.gossip)
	}
	preset, err := o.engine()
	if err != nil {
		return s, err
	}
	s = simulation{simulateOptions: o}
	for _, name := range strings.Split(o.policies, ",") {
		maker, err := sim.Named(strings.TrimSpace(name), sim.Options{Engine: preset, ConcurrencyThreshold: o.threshold})
		if err != nil {
			return s, fmt.Errorf("%w; there are\n%s", err, sim.Names())
		}
		s.policies, s.makers = append(s.policies, strings.TrimSpace(name)), append(s.makers, maker)
	}
	for _, word := range strings.Split(o.routers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostRouters {
			return s, fmt.Errorf("--routers %q: want numbers of 1..%d", o.routers, mostRouters)
		}
		s.routers = append(s.routers, n)
	}
	return s, nil
}

func (o simulateOptions) run(progress io.Writer) (*simulated, error) {
	s, err := o.check()
	if err != nil {
		return nil, usageError{fmt.Errorf("simulate: %w", err)}
	}
	r, err := o.open(trace.Options{}, progress)
	if err != nil {
		return nil, usageError{err}
	}
	r.gossip = o.gossip
	results := &simulated{
		Trace: r.trace.Name, Format: o.format, Requests: len(r.jobs), Replicas: o.replicas, CacheTokens: r.engine.KVTokens,
		Model: o.model, Speed: o.speed, Seed: o.seed, Notes: r.trace.Notes,
	}
	if ratio := r.trace.SampleRatio; ratio < 1 {
		results.Notes = append(results.Notes, fmt.Sprintf("the trace has %.3g %% of the requests there were; --speed %.4g makes up for it", 100*ratio, o.speed/ratio))
	}
	for _, routers := range s.routers {
		for i, maker := range s.makers {
			x, err := r.run(s.policies[i], maker, o.replicas, routers, o.speed)
			if err != nil {
				return nil, fmt.Errorf("simulate %s: %w", s.policies[i], err)
			}
			results.Results = append(results.Results, resultOf(s.policies[i], routers, &x))
		}
	}
	return results, nil
}
