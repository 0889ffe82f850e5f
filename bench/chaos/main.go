// Command chaos finds out whether warmpath loses anything when something goes
// wrong: mixed traffic runs through a real Envoy while warmpath, Envoy, the network
// between them, model servers and the membership fail in every way of a list, and
// simulated replicas say what really happened. With -soak it lets faults happen at
// random for a time and looks for what grows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	binaries binaries
	only     string // part of the scenarios' names; "" is all
	short    bool
	seed     uint64
	// requests is how many there are at least in all scenarios together.
	requests int
	pace     pace
	soak     time.Duration // 0 is the list of scenarios
	files    record.Files
	command  string
}

func main() { record.Main("chaos", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.binaries.envoy, "envoy", "envoy", "the Envoy `binary`")
	flags.StringVar(&o.binaries.warmpath, "warmpath", "bin/warmpath", "the warmpath `binary`")
	flags.BoolVar(&o.short, "short", false, "a small form of half a minute: a few scenarios, one strategy each")
	flags.StringVar(&o.only, "only", "", "play only scenarios whose name contains this `text`")
	flags.Uint64Var(&o.seed, "seed", 1, "makes the texts and what is at random")
	flags.IntVar(&o.requests, "requests", 110_000, "at least so many in all rounds together")
	flags.DurationVar(&o.pace.duration, "duration", 0, "at least so long a round")
	flags.Float64Var(&o.pace.rate, "rate", 160, "short calls a second at most")
	flags.DurationVar(&o.soak, "soak", 0, "instead of the list: random faults for so `long`")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	if o.requests < 0 || o.pace.duration < 0 || o.soak < 0 || !(o.pace.rate >= 1 && o.pace.rate <= 100_000) {
		return o, fmt.Errorf("-requests %d, -duration %v, -soak %v, -rate %v: want 0 or more, and a rate of 1 to 100000",
			o.requests, o.pace.duration, o.soak, o.pace.rate)
	}
	o.command = "chaos"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "envoy", "warmpath", "json", "markdown": // where they are is of no interest
		case "short":
			o.command += " -short"
		default:
			o.command += fmt.Sprintf(" -%s %q", f.Name, f.Value.String())
		}
	})
	return o, nil
}

// chosen are the scenarios that are played.
func (o *options) chosen() ([]scenario, error) {
	list := slices.DeleteFunc(scenarios(), func(sc scenario) bool {
		return !strings.Contains(sc.name, o.only) || o.short && !sc.brief || o.soak > 0 && !sc.lasting
	})
	if len(list) == 0 {
		return nil, fmt.Errorf("-only %q: no scenario is called so", o.only)
	}
	return list, nil
}

// run plays and writes the report; it fails if anything is not as it should be.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	r, err := makeReport(ctx, o, stderr)
	if err != nil {
		return err
	}
	return errors.Join(o.files.Write(r, r.markdown(), stdout), r.err())
}

func makeReport(ctx context.Context, o options, progress io.Writer) (r report, err error) {
	list, err := o.chosen()
	if err != nil {
		return r, err
	}
	if r.Machine, err = record.NewMachine(ctx, o.binaries.envoy, o.command, o.seed); err != nil {
		return r, err
	}
	dir, remove, err := tempDir()
	if err != nil {
		return r, err
	}
	defer remove()
	judging := health
	if o.soak > 0 {
		judging = soakHealth
	}
	s, err := start(ctx, o.binaries, dir, judging)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	begin := time.Now()
	if o.soak > 0 {
		err = s.soak(ctx, o, list, &r, progress)
	} else {
		err = s.faults(ctx, o, list, &r, progress)
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, err
}

// faults plays every scenario under every strategy; in the short form under one.
func (s *system) faults(ctx context.Context, o options, list []scenario, r *report, progress io.Writer) error {
	p := o.pace
	p.requests = o.requests / (len(list) * len(strategies))
	if o.short {
		p.requests = 0
	}
	for i := range list {
		begin := time.Now()
		row := s.underAll(ctx, &list[i], i, o, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Rows = append(r.Rows, row)
		fmt.Fprintf(progress, "%-45s %6d requests, %3.0f s, wrong: %d\n", row.Scenario, row.Requests, time.Since(begin).Seconds(), row.wrong())
	}
	return nil
}

// underAll plays one scenario in all its rounds.
func (s *system) underAll(ctx context.Context, sc *scenario, number int, o options, p pace) row {
	total := newRow(sc.name)
	total.Rounds = 0
	todo := strategies
	if o.short {
		todo = strategies[number%len(strategies):][:1]
	}
	if err := s.renew(ctx, sc, todo[0]); err != nil {
		total.Error = err.Error()
		return total
	}
	for n, config := range todo {
		row, err := s.play(ctx, sc, config, n, o.seed+uint64(number), p)
		if err != nil {
			total.Error = fmt.Sprintf("%s: %v", config.Strategy, err)
			return total
		}
		total.add(row)
	}
	return total
}
