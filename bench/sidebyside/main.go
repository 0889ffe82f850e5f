// Command sidebyside measures in one run what routing costs: Envoy alone, an
// ext_proc server that decides nothing, and warmpath with each strategy, in
// interleaved rounds on one Envoy, so that the machine's noise hits all alike.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	plan     plan
	binaries binaries
	arms     []arm
	files    record.Files
	command  string
}

func main() { record.Main("sidebyside", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("sidebyside", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.binaries.envoy, "envoy", "envoy", "the Envoy `binary`")
	flags.StringVar(&o.binaries.warmpath, "warmpath", "bin/warmpath", "the warmpath `binary`")
	flags.StringVar(&o.binaries.noop, "noop", "bin/noop", "the no-op's `binary`")
	flags.IntVar(&o.plan.rounds, "rounds", 0, "at most so many rounds; 0 is as many as -duration has room for")
	flags.DurationVar(&o.plan.duration, "duration", 5*time.Minute, "the time for all rounds; 0 is no limit")
	flags.IntVar(&o.plan.requests, "requests", 200, "requests one at a time, for each arm and case of a round")
	flags.DurationVar(&o.plan.saturation, "saturation", 300*time.Millisecond, "time at saturation, for each arm and case of a round")
	flags.Uint64Var(&o.plan.seed, "seed", 1, "makes the texts and the order of the arms")
	sizes := flags.String("sizes", "4096,65536,1048576", "bytes of the request bodies")
	names := flags.String("arms", ownArms(), "what is measured, of "+strings.Join(armNames(), ",")+"; "+baseline+" always is")
	flags.StringVar(&o.binaries.peers, "peers", ".tools/peers/bin/python", "the Python `interpreter` that has the peers' packages")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.command = "sidebyside"
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "envoy" && f.Name != "warmpath" && f.Name != "noop" && f.Name != "peers" { // where they are is of no interest
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	if o.arms, err = chosenArms(*names); err != nil {
		return o, err
	}
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil {
			return o, fmt.Errorf("-sizes %q: want numbers of bytes, separated by commas", *sizes)
		}
		o.plan.sizes = append(o.plan.sizes, n)
	}
	if o.plan.rounds < 0 || o.plan.duration < 0 || o.plan.rounds == 0 && o.plan.duration == 0 {
		return o, fmt.Errorf("-rounds %d, -duration %v: want one of them above 0, none below", o.plan.rounds, o.plan.duration)
	}
	if o.plan.requests < 1 || o.plan.saturation <= 0 {
		return o, fmt.Errorf("-requests %d, -saturation %v: want more than 0", o.plan.requests, o.plan.saturation)
	}
	return o, nil
}

// run measures and writes the report: of the complete rounds if ctx ends.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	r, err := makeReport(ctx, o, stderr)
	if err != nil {
		return err
	}
	return o.files.Write(r, r.markdown(), stdout)
}

func makeReport(ctx context.Context, o options, progress io.Writer) (r report, err error) {
	m, err := record.NewMachine(ctx, o.binaries.envoy, o.command, o.plan.seed)
	if err != nil {
		return r, err
	}
	cases, err := o.plan.cases()
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "warmpath-sidebyside-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	s, err := start(ctx, o.binaries, dir, o.arms, connections)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	all, err := s.measure(ctx, o.plan, cases, progress)
	if len(all) == 0 || err != nil && ctx.Err() == nil {
		return r, err
	}
	r = newReport(all, cases, o.arms)
	r.Machine, r.Requests = m, o.plan.requests
	return r, s.checkRouters(context.WithoutCancel(ctx), &r)
}

// checkRouters fails if Envoy has served requests of an arm without its router:
// then the figures are not what they claim to be.
func (s *system) checkRouters(ctx context.Context, r *report) error {
	for n, arm := range s.arms {
		if !arm.asked() {
			continue
		}
		passed, err := s.passedOver(ctx, arm)
		if err != nil {
			return err
		}
		asked, err := s.timesAsked(ctx, arm)
		if err != nil {
			return err
		}
		sent := 0
		for _, c := range r.Cases {
			sent += c.Arms[n].Sent
		}
		if passed > 0 || asked < sent {
			return fmt.Errorf("arm %s: Envoy passed over its router %d times and asked it for %d of %d requests or more", arm.name, passed, asked, sent)
		}
	}
	return nil
}
