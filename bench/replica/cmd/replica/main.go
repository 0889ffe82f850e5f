// Command replica serves model servers without a model, one process for all.
//
//	replica -listen 127.0.0.1:9000 -replicas 7 -time-scale 10
//
// serves 127.0.0.1:9000 to 127.0.0.7:9000 until it is interrupted; each has
// the API that package replica describes, and any of them answers for the whole
// fleet under /fleet/stats.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	listen    string
	replicas  int
	shared    bool
	addresses string
	model     string
	models    string
	kvTokens  int
	params    replica.Params
}

// run serves until ctx ends; it prints one line for each replica when all listen.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	fleet, err := o.start()
	if err != nil {
		return err
	}
	for _, address := range fleet.Addresses() {
		fmt.Fprintf(stdout, "http://%s\n", address)
	}
	<-ctx.Done()
	return fleet.Close()
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("replica", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:9000", "ip:port of the first replica; the others follow on the next addresses, same port")
	flags.IntVar(&o.replicas, "replicas", 7, "number of replicas")
	flags.BoolVar(&o.shared, "shared", false, "one listener for all of them, told apart by local address")
	flags.StringVar(&o.addresses, "addresses", "", "comma-separated ip:port list, instead of -listen and -replicas")
	flags.StringVar(&o.model, "engine", "llama-70b", "speed and cache size: llama-70b, qwen-32b, llama-8b or llama-8b-l4")
	flags.IntVar(&o.kvTokens, "kv-tokens", 0, "prefix cache in tokens; 0 is the engine's own")
	flags.StringVar(&o.models, "models", "", "comma-separated model names served; empty is any")
	flags.Float64Var(&o.params.TimeScale, "time-scale", 1, "how many times faster than real")
	flags.IntVar(&o.params.OutputTokens, "output-tokens", 64, "length of an answer when the request sets no limit")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	return o, o.complete()
}

func (o *options) complete() error {
	presets := map[string]func() engine.Params{
		"llama-70b": engine.Llama70B, "qwen-32b": engine.Qwen32B, "llama-8b": engine.Llama8B,
		"llama-8b-l4": engine.Llama8BOnL4,
	}
	preset := presets[o.model]
	if preset == nil {
		return fmt.Errorf("-engine %q: want llama-70b, qwen-32b, llama-8b or llama-8b-l4", o.model)
	}
	if o.replicas < 1 {
		return fmt.Errorf("-replicas %d: want 1 or more", o.replicas)
	}
	o.params.Engine = preset()
	if o.kvTokens != 0 {
		o.params.Engine.KVTokens = o.kvTokens
	}
	if o.models != "" {
		o.params.Models = strings.Split(o.models, ",")
	}
	return nil
}

func (o *options) start() (*replica.Fleet, error) {
	if o.addresses != "" {
		return replica.Listen(strings.Split(o.addresses, ","), o.params)
	}
	first, err := netip.ParseAddrPort(o.listen)
	if err != nil {
		return nil, fmt.Errorf("-listen %q: want ip:port: %w", o.listen, err)
	}
	if o.shared {
		return replica.ListenShared(first, o.replicas, o.params)
	}
	return replica.Listen(replica.Addresses(first, o.replicas), o.params)
}
