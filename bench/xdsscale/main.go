// Command xdsscale finds out what a change of membership costs when the fleet is
// large and many Envoys follow it: how long until the last of them has it, the
// processor time, the bytes and the memory of the control plane, and what the
// router's new table takes. The Envoys are simulated, in a process of their own.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	clients  int
	sizes    []int // endpoints
	rate     int   // changes a second
	duration time.Duration
	files    record.Files
	command  string
	profile  string // of the processor time, a file
	// crowd is the control plane's address if this process is the clients.
	crowd string
}

func main() { record.Main("xdsscale", parse, run) }

const (
	maxClients   = 1000
	maxEndpoints = 100_000
)

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("xdsscale", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "a small form of some seconds: fewer of everything")
	sizes := flags.String("endpoints", "", "fleets of so `many` endpoints, comma-separated (default 10,1000,10000, short 10,1000)")
	flags.IntVar(&o.clients, "clients", 0, "Envoys that are simulated (default 50, short 5)")
	flags.IntVar(&o.rate, "rate", 10, "changes a second: one endpoint leaves, another comes")
	flags.DurationVar(&o.duration, "duration", 0, "how long endpoints come and go (default 20s, short 1s)")
	flags.StringVar(&o.crowd, "crowd", "", "be the clients of the control plane at this `address`; for the program's own use")
	flags.StringVar(&o.profile, "profile", "", "write a CPU profile of the control plane and the router to this `file`")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.command = "xdsscale"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "json", "markdown", "profile": // where they are is of no interest
		case "short":
			o.command += " -short"
		default:
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	if err := o.defaults(*short, *sizes); err != nil {
		return o, err
	}
	if o.clients < 1 || o.clients > maxClients || o.rate < 1 || o.duration < time.Second {
		return o, fmt.Errorf("-clients %d, -rate %d, -duration %v: want 1 to %d, 1 or more, 1s or more", o.clients, o.rate, o.duration, maxClients)
	}
	return o, nil
}

func (o *options) defaults(short bool, sizes string) error {
	clients, duration, fleets := 50, 20*time.Second, "10,1000,10000"
	if short {
		clients, duration, fleets = 5, time.Second, "10,1000"
	}
	if o.clients == 0 {
		o.clients = clients
	}
	if o.duration == 0 {
		o.duration = duration
	}
	if sizes != "" {
		fleets = sizes
	}
	for text := range strings.SplitSeq(fleets, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 || n > maxEndpoints {
			return fmt.Errorf("-endpoints %q: %q: want numbers of 2 to %d", fleets, text, maxEndpoints)
		}
		o.sizes = append(o.sizes, n)
	}
	return nil
}

// longest is how much time a fleet gets, on a machine that others use too.
const longest = 10 * time.Minute

// run measures and writes the report.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if o.crowd != "" {
		return crowd(ctx, o.crowd, o.clients, os.Stdin)
	}
	r := new(report)
	var err error
	if r.Machine, err = record.NewMachine(ctx, "", o.command, 1); err != nil {
		return err
	}
	stop, err := profile(o.profile)
	if err != nil {
		return err
	}
	defer stop()
	for _, n := range o.sizes {
		if err := measure(ctx, o, n, r); err != nil {
			return fmt.Errorf("%d endpoints: %w", n, err)
		}
		fmt.Fprintf(stderr, "%d endpoints are done\n", n)
	}
	return o.files.Write(r, r.markdown(), stdout)
}

// profile begins a profile, if there is a file for one, and returns what ends it.
func profile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile is looked at, and found cut if it is
	}, nil
}

func measure(ctx context.Context, o options, endpoints int, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	row, err := measurePlane(ctx, o, endpoints)
	if err != nil {
		return err
	}
	r.Planes, r.Tables = append(r.Planes, row), append(r.Tables, measureTable(endpoints))
	return nil
}
