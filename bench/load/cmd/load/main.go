// Command load sends LLM requests through a gateway and prints what they met, as
// Markdown or JSON.
//
//	load -url http://127.0.0.1:10000 -rate 50 -duration 1m                   shared prefixes, open loop
//	load -url http://127.0.0.1:10000 -conversations 20 -turns 5 -concurrency 8
//	load -url http://127.0.0.1:10000 -api invoke -bytes 65536 -count 1000 -concurrency 16 -process envoy=4711
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/cpu"
	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/record"
)

func main() { record.Main("load", parse, run) }

// report is the outcome as JSON.
type report struct {
	Kind    load.Kind    `json:"kind"`
	Summary load.Summary `json:"summary"`
	// CPU is the processor time of the processes that were named, in seconds for
	// 1,000 requests.
	CPU map[string]float64 `json:"cpu_seconds_per_1000_requests,omitempty"`
}

// run sends the requests and writes the report, of what was sent if ctx ends.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	requests, err := o.requests()
	if err != nil {
		return err
	}
	client := load.NewClient(o.url, o.connections, nil)
	defer client.Close()
	before, err := used(o.processes)
	if err != nil {
		return err
	}
	total := o.load.Count
	if total == 0 && o.load.Duration == 0 {
		total = len(requests)
	}
	o.load.Observe = load.Progress(stderr, total, 5*time.Second)
	result, err := load.Run(ctx, client, requests, o.load)
	if err != nil && ctx.Err() == nil {
		return err
	}
	after, err := used(o.processes)
	if err != nil {
		return err
	}
	r := report{Kind: o.kind, Summary: result.Summary(), CPU: make(map[string]float64)}
	for name := range o.processes {
		r.CPU[name] = (after[name] - before[name]).Seconds() * 1000 / float64(max(1, r.Summary.Requests))
	}
	if err := r.write(stdout, o.json); err != nil {
		return err
	}
	if r.Summary.Requests > 0 && r.Summary.Failed == r.Summary.Requests {
		return fmt.Errorf("all %d requests failed", r.Summary.Failed)
	}
	return nil
}

// used is the processor time of each process since its start.
func used(processes map[string]int) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration)
	for name, pid := range processes {
		var err error
		if times[name], err = cpu.Used(pid); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return times, nil
}

func (r report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		text, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	}
	var b strings.Builder
	b.WriteString(r.Summary.Markdown())
	names := make([]string, 0, len(r.CPU))
	for name := range r.CPU {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 0 {
		b.WriteString("\n| process | CPU seconds for 1,000 requests |\n|---|---|\n")
	}
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %.3f |\n", name, r.CPU[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
