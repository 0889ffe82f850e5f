// Command realengine measures what routing by prefix is worth with a real engine and
// its real prefix cache: three llama-servers with a small random model, behind Envoy
// with round robin and behind Envoy with warmpath. Hits are what the engines say.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/warmpath/warmpath/bench/gguf"
	"github.com/warmpath/warmpath/bench/record"
)

// options are what a run is asked for.
type options struct {
	binaries binaries
	scale    scale
	seed     uint64
	// addresses are those of the engines.
	addresses []string
	files     record.Files
	command   string
}

// binaries are the programs that are run.
type binaries struct{ envoy, warmpath, llamaServer string }

func main() { record.Main("realengine", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("realengine", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "a small form, whose times say little")
	flags.StringVar(&o.binaries.envoy, "envoy", "envoy", "the Envoy `binary`")
	flags.StringVar(&o.binaries.warmpath, "warmpath", "bin/warmpath", "the warmpath `binary`")
	flags.StringVar(&o.binaries.llamaServer, "llama-server", "llama-server", "the `binary` of llama.cpp's server")
	flags.Uint64Var(&o.seed, "seed", 1, "makes the texts and their order")
	flags.StringVar(&o.files.JSON, "json", "", "write the report to this `file`")
	flags.StringVar(&o.files.Markdown, "markdown", "-", "write the tables to this `file`; - is standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	o.scale, o.command, o.addresses = full(), "realengine", addresses()
	if *short {
		o.scale, o.command = brief(), "realengine -short"
	}
	return o, nil
}

// run measures, writes the report, and fails when a bound is not kept.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	r, err := makeReport(ctx, o, stderr)
	if err != nil {
		return err
	}
	if err := o.files.Write(r, r.markdown(), stdout); err != nil {
		return err
	}
	return r.verdict()
}

func makeReport(ctx context.Context, o options, progress io.Writer) (r report, err error) {
	machine, err := record.NewMachine(ctx, o.binaries.envoy, o.command, o.seed)
	if err != nil {
		return r, err
	}
	version, err := engineVersion(ctx, o.binaries.llamaServer)
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "warmpath-realengine-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	model := filepath.Join(dir, "tiny.gguf")
	if err := gguf.WriteFile(model, gguf.Tiny()); err != nil {
		return r, err
	}
	w, err := o.scale.workload(o.seed)
	if err != nil {
		return r, err
	}
	m := &measurement{binaries: o.binaries, dir: dir, model: model, addresses: o.addresses, workload: w, progress: progress}
	if err := m.measure(ctx); err != nil {
		return r, err
	}
	r = newReport(m)
	r.Machine, r.Engine = machine, filepath.Base(o.binaries.llamaServer)+", "+version
	return r, nil
}
