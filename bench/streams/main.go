// Command streams finds out what many streams at once cost warmpath, and whether it
// keeps count of them: thousands of responses held open through one real Envoy,
// storms of clients that leave and come back, more requests than it may serve, and
// tables that millions of distinct prompts go through. It also measures what a
// warmpath costs that has nothing to do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	envoy, warmpath string
	only            string // part of the parts' names; "" is all
	short           bool
	seed            uint64
	streams         int // that are held open at once
	keys            int // distinct prompts for the tables
	idle            time.Duration
	files           record.Files
	command         string
}

func main() { record.Main("streams", parse, run) }

// maxStreams is what the file descriptors of one process and the ports of one
// address allow.
const maxStreams = 20_000

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("streams", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.envoy, "envoy", "envoy", "the Envoy `binary`")
	flags.StringVar(&o.warmpath, "warmpath", "bin/warmpath", "the warmpath `binary`")
	flags.BoolVar(&o.short, "short", false, "a small form of a minute: fewer of everything")
	flags.StringVar(&o.only, "only", "", "only parts whose name contains this `text`")
	flags.Uint64Var(&o.seed, "seed", 1, "makes the texts")
	flags.IntVar(&o.streams, "streams", 0, "how many responses are open at once (default 5000, short 600)")
	flags.IntVar(&o.keys, "keys", 0, "distinct prompts for the tables (default 10000000, short 200000)")
	flags.DurationVar(&o.idle, "idle", 0, "how long nothing is done (default 60s, short 2s)")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.command = "streams"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "envoy", "warmpath", "json", "markdown": // where they are is of no interest
		case "short":
			o.command += " -short"
		default:
			o.command += fmt.Sprintf(" -%s %q", f.Name, f.Value.String())
		}
	})
	o.defaults()
	if o.streams < 10 || o.streams > maxStreams || o.keys < 1000 || o.idle < time.Second {
		return o, fmt.Errorf("-streams %d, -keys %d, -idle %v: want 10 to %d, 1000 or more, 1s or more", o.streams, o.keys, o.idle, maxStreams)
	}
	return o, nil
}

func (o *options) defaults() {
	streams, keys, idle := 5000, 10_000_000, time.Minute
	if o.short {
		streams, keys, idle = 600, 200_000, 2*time.Second
	}
	if o.streams == 0 {
		o.streams = streams
	}
	if o.keys == 0 {
		o.keys = keys
	}
	if o.idle == 0 {
		o.idle = idle
	}
}

// part is one of the things that are measured.
type part struct {
	name string
	run  func(context.Context, options, *report) error
}

func parts() []part {
	return []part{
		{"open", measureOpen}, {"storm", measureStorm}, {"overload", measureOverload}, {"idle", measureIdle}, {"tables", measureTables},
	}
}

// longest is how much time a part gets, on a machine that others use too. A response
// that never ends is found by it.
const longest = 30 * time.Minute

func within(ctx context.Context, o options, r *report, p part) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return p.run(ctx, o, r)
}

// run measures and writes the report; it fails if anything is not as it should be.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if err := allowFiles(); err != nil {
		return err
	}
	r := new(report)
	var err error
	if r.Machine, err = record.NewMachine(ctx, o.envoy, o.command, o.seed); err != nil {
		return err
	}
	begin, played := time.Now(), 0
	for _, p := range parts() {
		if !strings.Contains(p.name, o.only) {
			continue
		}
		played++
		since, before := time.Now(), len(r.Wrong)
		if err := within(ctx, o, r, p); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.wrong("%s: %v", p.name, err)
		}
		fmt.Fprintf(stderr, "%-10s %4.0f s, wrong so far: %d\n", p.name, time.Since(since).Seconds(), len(r.Wrong))
		for _, wrong := range r.Wrong[before:] {
			fmt.Fprintf(stderr, "  wrong: %.400s\n", wrong)
		}
	}
	if played == 0 {
		return fmt.Errorf("-only %q: no part is called so", o.only)
	}
	r.Seconds = time.Since(begin).Seconds()
	return errors.Join(o.files.Write(r, r.markdown(), stdout), r.err())
}
