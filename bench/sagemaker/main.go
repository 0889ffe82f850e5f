// Command sagemaker repeats the experiment with which Amazon announced prefix-aware
// routing: seven instances of a 70B model, prompts with long shared prefixes and
// short conversations, random against prefix-aware routing; here with warmpath, a
// real Envoy and simulated replicas. The figures stand beside the published ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	binaries binaries
	scale    scale
	only     string // part of the configurations' descriptions; "" is all
	seed     uint64
	files    record.Files
	command  string
}

func main() { record.Main("sagemaker", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("sagemaker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "a small form of some seconds, whose times mean nothing")
	flags.StringVar(&o.binaries.envoy, "envoy", "envoy", "the Envoy `binary`")
	flags.StringVar(&o.binaries.warmpath, "warmpath", "bin/warmpath", "the warmpath `binary`")
	flags.Uint64Var(&o.seed, "seed", 1, "makes the texts, the times and the order of the strategies")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	rounds := flags.Int("rounds", 0, "rounds of all configurations; 0 is 2, or 1 of the short form")
	speed := flags.Float64("speed", 0, "how much faster than real the replicas are; 0 is 4, or 20 of the short form")
	flags.StringVar(&o.only, "only", "", "measure only configurations whose description contains this `text`, as \"long, open\"")
	rate := flags.Float64("long-rate", 0, "requests a simulated second of the long workload's open loop; 0 is the default")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.command = "sagemaker"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "envoy", "warmpath", "json", "markdown": // where they are is of no interest
		case "short":
			o.command += " -short"
		case "only":
			o.command += fmt.Sprintf(" -only %q", o.only)
		default:
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	if *rounds < 0 || !(*speed >= 0) || !(*rate >= 0) {
		return o, fmt.Errorf("-rounds %d, -speed %v, -long-rate %v: want 0 or more", *rounds, *speed, *rate)
	}
	o.scale = full()
	if *short {
		o.scale = brief()
	}
	o.scale.rounds = orDefault(*rounds, o.scale.rounds)
	o.scale.timeScale = orDefault(*speed, o.scale.timeScale)
	o.scale.longRate = orDefault(*rate, o.scale.longRate)
	return o, nil
}

// orDefault is the value, or the default if that is 0.
func orDefault[V int | float64](value, byDefault V) V {
	if value == 0 {
		return byDefault
	}
	return value
}

// run measures and writes the report.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	r, err := makeReport(ctx, o, stderr)
	if err != nil {
		return err
	}
	return o.files.Write(r, r.markdown(), stdout)
}

func makeReport(ctx context.Context, o options, progress io.Writer) (r report, err error) {
	configurations := slices.DeleteFunc(o.scale.configurations(), func(c configuration) bool { return !strings.Contains(c.String(), o.only) })
	if len(configurations) == 0 {
		return r, fmt.Errorf("-only %q: no configuration is called so", o.only)
	}
	machine, err := record.NewMachine(ctx, o.binaries.envoy, o.command, o.seed)
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "warmpath-sagemaker-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	s, err := start(ctx, o.binaries, dir, o.scale)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	rounds, err := s.measure(ctx, configurations, o.seed, progress)
	if err != nil {
		return r, err
	}
	shares, err := s.shares(ctx, o.seed)
	if err != nil {
		return r, err
	}
	r = newReport(rounds, configurations, shares, o.scale.timeScale)
	r.Machine = machine
	r.PassedOver, err = s.passedOver(ctx)
	return r, err
}
