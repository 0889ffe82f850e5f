// Command demo shows warmpath's main job on one machine: a real Envoy, warmpath
// and seven simulated replicas serve the same requests at random, by a fixed part
// of their beginning, and by as much of it as fits, and the difference is printed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/internal/otlpsink"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
)

const (
	replicas = 7
	// timeScale makes the simulated GPUs faster than real ones, so that the demo
	// takes less than a minute. Higher, and this machine's own work would show.
	timeScale = 5
)

// options are what is shown.
type options struct {
	warmpath, envoy string // binaries
	workload        load.Shared
	outputTokens    int // of each answer
	// rate is the requests a second of the open loop; at real speed it would be
	// a timeScale-th of it.
	rate float64
	// burst is how many requests of one prefix are sent at once.
	burst int
}

// documents is the workload: documents of about 6,500 tokens, each asked about six
// times, in random order, behind the rules of 1,500 tokens that one application has
// for all of its requests.
var documents = load.Shared{Prefixes: 120, Uses: 6, CommonChars: 6_000, PrefixChars: 26_000, SuffixChars: 1_600, Seed: 1}

// fixedLength is what the fixed prefix length is: long enough for most, and too
// short for rules as long as these.
const fixedLength = 4096

func main() {
	warmpath := flag.String("warmpath", "bin/warmpath", "the warmpath `binary`")
	envoy := flag.String("envoy", "envoy", "the Envoy `binary`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{warmpath: *warmpath, envoy: *envoy, workload: documents, outputTokens: 24, rate: 60, burst: 48}
	if err := demo(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo runs the demonstration and leaves nothing behind, also when ctx ends in
// the middle of it.
func demo(ctx context.Context, o options, w io.Writer) error {
	dir, err := os.MkdirTemp("", "warmpath-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sink, err := otlpsink.Start()
	if err != nil {
		return err
	}
	defer sink.Close()

	fmt.Fprintf(w, "Starting %d simulated replicas (70B class, %d times real speed), warmpath and Envoy.\n", replicas, timeScale)
	s, err := stack.Start(ctx, stack.Options{
		Warmpath: []string{o.warmpath}, Envoy: o.envoy, Dir: dir, Replicas: replicas,
		Replica: replica.Params{TimeScale: timeScale}, Inspect: 1,
		Config: stack.Config{Strategy: "RANDOM", OTLPEndpoint: sink.Address()},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Watch it: %s/ in a browser, or bin/warmpath top --from %s\n", s.AdminURL(), s.AdminURL())
	d := &demonstration{ctx: ctx, options: o, stack: s, sink: sink, out: w}
	err = d.run()
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted; everything is stopped")
	}
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return err
}

type demonstration struct {
	ctx     context.Context
	options options
	stack   *stack.Stack
	sink    *otlpsink.Sink
	out     io.Writer
}

func (d *demonstration) run() error {
	prompts, err := d.options.workload.Prompts()
	if err != nil {
		return err
	}
	chat := load.Kind{API: load.Chat, Model: "llama-70b", Stream: true, OutputTokens: d.options.outputTokens}
	requests, err := chat.Requests(prompts)
	if err != nil {
		return err
	}
	random, err := d.measure("RANDOM", requests)
	if err != nil {
		return err
	}
	fixed, err := d.switchTo(fixedLength, fmt.Sprintf("PREFIX_AWARE, prefixLength %d", fixedLength), requests)
	if err != nil {
		return err
	}
	auto, err := d.switchTo(route.AutoPrefixLength, "PREFIX_AWARE, prefixLength auto", requests)
	if err != nil {
		return err
	}
	d.printComparison(random, fixed, auto)
	if err := d.burst(requests[0]); err != nil {
		return err
	}
	return d.printDecisions()
}

// switchTo changes the strategy while requests run, and measures.
func (d *demonstration) switchTo(prefixLength int, name string, requests []load.Request) (measured, error) {
	fmt.Fprintln(d.out, "\nChanging warmpath.yaml while requests run.")
	next := stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: prefixLength, OTLPEndpoint: d.sink.Address()}
	if err := d.switchUnderLoad(next, requests[:min(80, len(requests))]); err != nil {
		return measured{}, err
	}
	return d.measure(name, requests)
}

// measure sends the workload to replicas with empty caches.
func (d *demonstration) measure(name string, requests []load.Request) (measured, error) {
	fmt.Fprintf(d.out, "\n%s: %d requests at %.0f/s through Envoy ...\n", name, len(requests), d.options.rate)
	d.stack.Replicas.ClearCaches()
	before, err := d.counted()
	if err != nil {
		return measured{}, err
	}
	result, err := d.send(requests, load.Load{Rate: d.options.rate, Seed: 1})
	if err != nil {
		return measured{}, err
	}
	after, err := d.counted()
	return measured{result.Summary(), after.minus(before)}, err
}

func (d *demonstration) send(requests []load.Request, l load.Load) (*load.Result, error) {
	client := load.NewClient(d.stack.URL, 256, nil)
	defer client.Close()
	return load.Run(d.ctx, client, requests, l)
}

// switchUnderLoad changes the configuration while requests run and fails if one of
// them did.
func (d *demonstration) switchUnderLoad(next stack.Config, requests []load.Request) error {
	type outcome struct {
		result *load.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := d.send(requests, load.Load{Rate: d.options.rate, Seed: 2})
		done <- outcome{result, err}
	}()
	err := d.stack.SetConfig(d.ctx, next)
	o := <-done
	if err != nil {
		return err
	}
	if o.err != nil {
		return o.err
	}
	summary := o.result.Summary()
	fmt.Fprintf(d.out, "%d requests ran meanwhile, %d failed.\n", summary.Requests, summary.Failed)
	if summary.Failed > 0 {
		return fmt.Errorf("requests failed while the configuration changed: %v", summary.Errors)
	}
	return nil
}

// burst sends many requests of one prefix at once, to show the bound.
func (d *demonstration) burst(request load.Request) error {
	n := d.options.burst
	requests := make([]load.Request, n)
	for i := range requests {
		requests[i] = request
	}
	result, err := d.send(requests, load.Load{Concurrency: n})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nA burst of %d requests for one prefix, all at once, overflows from its first home to the next ones:\n", n)
	for _, share := range result.Summary().Shares {
		fmt.Fprintf(d.out, "  %-22s %3d requests\n", share.Replica, share.Requests)
	}
	return nil
}

func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
