// Command plot draws pictures (PNG) of what was measured: of warmpath simulate's
// JSON, of bench/policies' JSON, and of the tables in docs/BENCHMARKS.md. It stands
// apart because drawing adds 7 MB to a program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/warmpath/warmpath/bench/record"
)

// options are what a picture is drawn of.
type options struct {
	kind, from, out string
}

// drawings are the kinds of pictures, by name.
func drawings() []drawing {
	return []drawing{
		{"simulate", "the output of warmpath simulate -json: times to the first token, and hits against balance", drawSimulated},
		{"frontier", "the -json of bench/policies: hits against balance where sessions are few and long", drawFrontiers},
		{"sagemaker", "the -json of bench/policies: the times to the first token on SageMaker's workloads", drawDistributions},
		{"added", "docs/BENCHMARKS.md: what routing adds to a request", drawAdded},
	}
}

// drawing makes a picture of a file's text.
type drawing struct {
	name, does string
	draw       func(text []byte) (picture, error)
}

func main() { record.Main("plot", parse, run) }

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("plot", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.from, "from", "", "the `file` to draw")
	flags.StringVar(&o.out, "out", "", "the PNG `file` to write")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, "usage: plot -from FILE -out FILE.png KIND\n\nKinds, and the file that each takes:\n")
		for _, d := range drawings() {
			fmt.Fprintf(stderr, "  %-10s %s\n", d.name, d.does)
		}
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch o.kind = flags.Arg(0); {
	case flags.NArg() != 1:
		return o, fmt.Errorf("%d kinds: want one of %s, behind the flags", flags.NArg(), kinds())
	case o.from == "" || o.out == "":
		return o, errors.New("want -from FILE and -out FILE.png")
	}
	return o, nil
}

func kinds() string {
	var names []string
	for _, d := range drawings() {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

func run(_ context.Context, o options, _, _ io.Writer) error {
	for _, d := range drawings() {
		if d.name != o.kind {
			continue
		}
		text, err := os.ReadFile(o.from)
		if err != nil {
			return err
		}
		p, err := d.draw(text)
		if err != nil {
			return fmt.Errorf("draw %s of %s: %w", o.kind, o.from, err)
		}
		return p.write(o.out)
	}
	return fmt.Errorf("kind %q: want one of %s", o.kind, kinds())
}
