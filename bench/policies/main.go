// Command policies compares warmpath's prefixLength auto with other ways of choosing
// a replica, on the traces of bench/data and on generated workloads, in virtual time,
// and judges it by the bounds that it is to keep. The same seed gives the same
// figures on every machine.
package main

import (
	"context"
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
	scope   scope
	parts   []string
	data    string
	seed    uint64
	files   record.Files
	command string
}

func main() { record.Main("policies", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("policies", flag.ContinueOnError)
	flags.SetOutput(stderr)
	brief := flags.Bool("short", false, "a small form of some seconds: small traces, and little varied")
	names := flags.String("traces", "", "only these `traces`, comma-separated: mooncake, ragpulse, weka, miniswe, realhumaneval, copilot, azure-conv, azure-code")
	policies := flags.String("policies", "", "only these `policies`, comma-separated, and auto")
	only := flags.String("parts", "", "only these `parts`, comma-separated: "+strings.Join(parts(), ", "))
	flags.StringVar(&o.data, "data", "bench/data", "`folder` of the traces")
	flags.Uint64Var(&o.seed, "seed", firstSeed, "makes texts, times, homes and what is random; 1 leaves the hashes of the traces as they are, as warmpath simulate does")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "out", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.command = "policies"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "data", "json", "out": // where they are is of no interest
		case "short":
			o.command += " -short"
		default:
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	o.scope = full()
	if *brief {
		o.scope = short()
	}
	if err := o.scope.limit(*names, *policies); err != nil {
		return o, err
	}
	o.parts = parts()
	if *only != "" {
		o.parts = strings.Split(*only, ",")
	}
	for _, p := range o.parts {
		if !slices.Contains(parts(), p) {
			return o, fmt.Errorf("-parts: there is no part %q: want %s", p, strings.Join(parts(), ", "))
		}
	}
	return o, nil
}

func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	machine, err := record.NewMachine(ctx, "", o.command, o.seed)
	if err != nil {
		return err
	}
	s := &simulator{ctx: ctx, progress: stderr, begin: time.Now()}
	r, err := s.make(o)
	if err != nil {
		return err
	}
	r.Machine, r.Minutes = machine, time.Since(s.begin).Minutes()
	r.missed(stderr)
	return o.files.Write(r, r.markdown(), stdout)
}
