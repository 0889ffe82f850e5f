package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// options are what a run is asked for.
type options struct {
	url         string
	connections int
	kind        load.Kind
	load        load.Load
	json        bool
	processes   map[string]int // ids by name

	// One of three workloads: bodies of one size, conversations, or shared
	// prefixes.
	bytes         int
	conversations load.Conversations
	shared        load.Shared
}

// parse reads the command line; stderr gets the usage.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.url, "url", "http://127.0.0.1:10000", "the gateway's `URL`, without a path")
	flags.IntVar(&o.connections, "connections", 256, "idle connections that are kept")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")

	flags.StringVar((*string)(&o.kind.API), "api", string(load.Chat), "chat, completions or invoke")
	flags.StringVar(&o.kind.Model, "model", "llama-70b", "the model named in the body")
	flags.BoolVar(&o.kind.ModelLast, "model-last", false, "name the model behind the prompt")
	flags.BoolVar(&o.kind.Stream, "stream", true, "ask for server-sent events; only then is there a time to first content")
	flags.IntVar(&o.kind.OutputTokens, "output-tokens", 24, "the length of the answers")

	flags.IntVar(&o.load.Concurrency, "concurrency", 0, "closed loop: requests in flight")
	flags.Float64Var(&o.load.Rate, "rate", 0, "open loop: requests a second, at random times")
	times := flags.String("times", "", "open loop: a `file` with the time of each request, in seconds, a line each")
	flags.IntVar(&o.load.Count, "count", 0, "requests to send, the workload again when it is over; 0 is each once")
	flags.DurationVar(&o.load.Duration, "duration", 0, "send so long, the workload again when it is over")
	flags.Uint64Var(&o.shared.Seed, "seed", 1, "makes the texts, their order and the random times")

	flags.IntVar(&o.bytes, "bytes", 0, "workload: bodies of exactly this size, as many as -prefixes")
	flags.IntVar(&o.conversations.Count, "conversations", 0, "workload: so many conversations")
	flags.IntVar(&o.conversations.Turns, "turns", 4, "how often a user asks in each conversation")
	flags.IntVar(&o.shared.Prefixes, "prefixes", 64, "workload otherwise: so many shared prefixes")
	flags.IntVar(&o.shared.Uses, "uses", 8, "requests for each prefix")
	flags.Float64Var(&o.shared.Skew, "skew", 0, "how much more popular some prefixes are (the exponent of Zipf's law)")
	flags.IntVar(&o.shared.PrefixChars, "prefix-chars", 16_000, "characters that are shared, of a conversation too")
	flags.IntVar(&o.shared.SuffixChars, "suffix-chars", 800, "characters of a question")

	o.processes = make(map[string]int)
	flags.Func("process", "measure the processor time of a process, `name=pid`; may be repeated", func(s string) error {
		name, id, _ := strings.Cut(s, "=")
		pid, err := strconv.Atoi(id)
		if err != nil || name == "" {
			return fmt.Errorf("%q: want name=pid", s)
		}
		o.processes[name] = pid
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	if err := o.check(); err != nil {
		return o, err
	}
	o.load.Seed = o.shared.Seed
	if *times != "" {
		o.load.Times, err = readTimes(*times)
	}
	return o, err
}

// requests makes the workload.
func (o options) requests() ([]load.Request, error) {
	if o.bytes > 0 {
		return o.kind.Sized(o.bytes, o.shared.Prefixes, o.shared.Seed)
	}
	var prompts []load.Prompt
	var err error
	if c := o.conversations; c.Count > 0 {
		c.SystemChars, c.UserChars, c.AnswerChars, c.Seed = o.shared.PrefixChars, o.shared.SuffixChars, o.shared.SuffixChars, o.shared.Seed
		prompts, err = c.Prompts()
	} else {
		prompts, err = o.shared.Prompts()
	}
	if err != nil {
		return nil, err
	}
	if n := len(o.load.Times); n > 0 && n < len(prompts) {
		prompts = prompts[:n]
	}
	return o.kind.Requests(prompts)
}

// readTimes reads a number of seconds from each line.
func readTimes(path string) ([]time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	for i, field := range strings.Fields(string(text)) {
		seconds, err := strconv.ParseFloat(field, 64)
		if err != nil || seconds < 0 {
			return nil, fmt.Errorf("%s: time %d is %q: want a number of seconds", path, i+1, field)
		}
		times = append(times, time.Duration(seconds*float64(time.Second)))
		if i > 0 && times[i] < times[i-1] {
			return nil, fmt.Errorf("%s: time %d, %q, is before the one above it", path, i+1, field)
		}
	}
	return times, nil
}

// check refuses numbers that would silently mean something else.
func (o options) check() error {
	for _, f := range []struct {
		name          string
		value, lowest int
	}{
		{"bytes", o.bytes, 0},
		{"conversations", o.conversations.Count, 0},
		{"output-tokens", o.kind.OutputTokens, 1},
		{"connections", o.connections, 1},
		{"concurrency", o.load.Concurrency, 0},
		{"count", o.load.Count, 0},
	} {
		if f.value < f.lowest {
			return fmt.Errorf("-%s %d: want %d or more", f.name, f.value, f.lowest)
		}
	}
	if !(o.load.Rate >= 0 && o.load.Rate <= 1e6) { // nor NaN
		return fmt.Errorf("-rate %v: want 0..1000000", o.load.Rate)
	}
	return nil
}
