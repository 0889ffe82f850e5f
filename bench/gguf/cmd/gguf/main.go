// Command gguf writes a small random model that llama.cpp can serve.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/warmpath/warmpath/bench/gguf"
)

func main() {
	err := run(os.Args[1:], os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gguf:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("gguf", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("o", "tiny.gguf", "write the model to this `file`")
	p := gguf.Tiny()
	flags.Uint64Var(&p.Seed, "seed", p.Seed, "makes the weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	return gguf.WriteFile(*path, p)
}
