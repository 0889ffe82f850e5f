package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/advice"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

const adviseUsage = `usage: warmpath advise --trace FILE [options]

Replays a trace under several settings and on several sizes of fleet, and says what
to set in warmpath.yaml, what that is expected to give compared with today, and what
is wrong with the prompts. What warmpath records (recording in docs/CONFIG.md) is
such a trace.

`

// adviseOptions are the command line's.
type adviseOptions struct {
	replayOptions
	today   string
	routers int
}

func advise(args []string, stdout, stderr io.Writer) error {
	var o adviseOptions
	flags := flag.NewFlagSet("warmpath advise", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.define(flags)
	flags.StringVar(&o.today, "today", "round_robin", "`setting` of today: round_robin, random, least_outstanding, kv_aware, auto, or prefix:N with N characters")
	flags.IntVar(&o.routers, "routers", 1, "`number` of routers that do not know of each other, 1..100")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, adviseUsage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("advise: unexpected argument %q", flags.Arg(0))}
	}
	found, err := o.run(stderr)
	if err != nil {
		return err
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(found)
	}
	return found.print(stdout)
}

func (o adviseOptions) check() error {
	if _, err := o.engine(); err != nil {
		return err
	}
	if o.routers < 1 || o.routers > mostRouters {
		return fmt.Errorf("--routers %d: want 1..%d", o.routers, mostRouters)
	}
	length, fixed := strings.CutPrefix(o.today, "prefix:")
	switch o.today {
	case "round_robin", "random", "least_outstanding", "kv_aware", "auto":
		return nil
	}
	if n, err := strconv.Atoi(length); !fixed || err != nil || n < route.MinPrefixLength || n > route.MaxPrefixLength {
		return fmt.Errorf("--today %q: want round_robin, random, least_outstanding, kv_aware, auto, or prefix:N with N of %d..%d",
			o.today, route.MinPrefixLength, route.MaxPrefixLength)
	}
	return nil
}

func (o adviseOptions) run(progress io.Writer) (*advised, error) {
	if err := o.check(); err != nil {
		return nil, usageError{fmt.Errorf("advise: %w", err)}
	}
	var texts advice.Texts
	r, err := o.open(trace.Options{Prompt: texts.Add}, progress)
	if err != nil {
		return nil, usageError{err}
	}
	a := &adviser{options: o, replay: r, speed: o.speed / r.trace.SampleRatio}
	if err := a.compare(); err != nil {
		return nil, fmt.Errorf("advise: %w", err)
	}
	return a.conclude(&texts), nil
}

// adviser collects what simulations give.
type adviser struct {
	options adviseOptions
	replay  *replay
	speed   float64

	today, chosen, slow advice.Run
	tried, fleets       []advice.Run
	keep                bool // today's is as good
}

// preferred are the settings that are tried, the ones that need the least thought
// first.
func preferred() []string {
	return []string{"auto", "prefix:4096", "prefix:1024", "prefix:2048", "prefix:16384", "least_outstanding", "random"}
}

// thresholds are bounds of one's own that are tried.
func thresholds() []int { return []int{8, 32} }

// mostReplicas bounds the fleets that are tried.
const mostReplicas = 1000

// compare runs everything that is compared.
func (a *adviser) compare() (err error) {
	n := a.options.replicas
	for _, setting := range preferred() {
		run, err := a.simulate(setting, 0, n, 1)
		if err != nil {
			return err
		}
		a.tried = append(a.tried, run)
	}
	if a.today, err = a.simulate(a.options.today, 0, n, 1); err != nil {
		return err
	}
	if err := a.choose(); err != nil {
		return err
	}
	if a.slow, err = a.simulate(a.chosen.Setting, a.chosen.Threshold, n, 0.1); err != nil {
		return err
	}
	for _, size := range advice.Sizes(n, mostReplicas) {
		run, err := a.simulate(a.chosen.Setting, a.chosen.Threshold, size, 1)
		if err != nil {
			return err
		}
		a.fleets = append(a.fleets, run)
	}
	return nil
}

// choose chooses a setting. Where prefixes gain nothing it is one that reads no
// bodies, and today's if that is as good.
func (a *adviser) choose() error {
	var others []advice.Run // that know no prefixes
	for _, run := range a.tried {
		if !isPrefix(run.Setting) {
			others = append(others, run)
		}
	}
	if a.chosen = advice.Choose(a.tried); a.replay.trace.Stats().Ideal() < advice.LittleShared {
		a.chosen = advice.Choose(others)
	}
	if isPrefix(a.chosen.Setting) {
		var bounded []advice.Run
		for _, threshold := range thresholds() {
			run, err := a.simulate(a.chosen.Setting, threshold, a.options.replicas, 1)
			if err != nil {
				return err
			}
			bounded = append(bounded, run)
		}
		a.chosen = advice.Bounded(a.chosen, bounded)
	}
	if a.keep = advice.Keep(a.today, a.chosen); !a.keep {
		return nil
	}
	if a.today.Setting != "round_robin" {
		a.chosen = a.today
	} else if plain := advice.Choose(others); advice.Keep(plain, a.chosen) { // warmpath has no such strategy
		a.chosen = plain
	}
	return nil
}

// isPrefix tells a setting of PREFIX_AWARE.
func isPrefix(setting string) bool {
	return setting == "auto" || strings.HasPrefix(setting, "prefix:")
}

// simulate runs one setting, unless that was run already.
func (a *adviser) simulate(setting string, threshold, replicas int, load float64) (advice.Run, error) {
	if load == 1 && replicas == a.options.replicas {
		for _, run := range append(a.tried, a.chosen) {
			if run.Setting == setting && run.Threshold == threshold {
				return run, nil
			}
		}
	}
	maker, err := sim.Named(setting, sim.Options{Engine: a.replay.engine, ConcurrencyThreshold: threshold})
	if err != nil {
		return advice.Run{}, err
	}
	r, err := a.replay.run(setting, maker, replicas, a.options.routers, a.speed*load)
	if err != nil {
		return advice.Run{}, fmt.Errorf("%s: %w", setting, err)
	}
	return advice.Run{
		Setting: setting, Threshold: threshold, Replicas: replicas, Hit: r.HitRate(), P50: r.Quantile(.5), P90: r.Quantile(.9),
		Busiest: r.Busiest(func(s sim.Share) int64 { return s.Requests }),
	}, nil
}

// prompts are the requests as they are looked at for faults.
func (a *adviser) prompts() []advice.Prompt {
	list := make([]advice.Prompt, len(a.replay.trace.Requests))
	for i, r := range a.replay.trace.Requests {
		list[i] = advice.Prompt{Chunks: r.Chunks, Tokens: r.Input, Who: r.Session}
		if r.Session == "" {
			list[i].Who = r.Tenant
		}
	}
	return list
}

// conclude puts into words what was found.
func (a *adviser) conclude(texts *advice.Texts) *advised {
	stats := a.replay.trace.Stats()
	prompts := a.prompts()
	v := &advised{
		Routers: a.options.routers,
		Trace:   a.replay.trace.Name, Format: a.options.format, Requests: stats.Requests, Span: stats.Span.Seconds(),
		SampleRatio: a.replay.trace.SampleRatio, Speed: a.speed, Model: a.options.model, Replicas: a.options.replicas,
		CacheTokens: a.replay.engine.KVTokens, Shared: stats.Ideal(), Distinct: int64(float64(advice.Distinct(prompts, trace.ChunkTokens)) / a.replay.trace.SampleRatio),
		Today: settingOf(a.today), Advised: settingOf(a.chosen), Notes: a.replay.trace.Notes,
	}
	for _, run := range a.tried {
		v.Tried = append(v.Tried, settingOf(run))
	}
	for _, run := range a.fleets {
		v.Fleets = append(v.Fleets, settingOf(run))
	}
	smallest, enough := advice.Smallest(a.fleets)
	v.Needed, v.Enough = smallest.Replicas, enough
	v.Config = configOf(a.chosen, a.options.routers)
	v.Warnings = a.warnings(stats, prompts, texts)
	v.Keep = a.keep
	return v
}

// configOf is the block to paste.
func configOf(run advice.Run, routers int) string {
	var b strings.Builder
	strategy := map[string]route.Strategy{"least_outstanding": route.LeastOutstandingRequests, "random": route.Random, "kv_aware": route.KVAware}
	if s, ok := strategy[run.Setting]; ok {
		fmt.Fprintf(&b, "routingConfig:\n  routingStrategy: %s\n", s)
	} else {
		length, threshold := strings.TrimPrefix(run.Setting, "prefix:"), auto
		if run.Threshold > 0 {
			threshold = strconv.Itoa(run.Threshold)
		}
		fmt.Fprintf(&b, "routingConfig:\n  routingStrategy: %s\n  prefixAwareRoutingConfig:\n    prefixLength: %s\n    concurrencyThreshold: %s\n",
			route.PrefixAware, length, threshold)
	}
	if routers > 1 {
		fmt.Fprintf(&b, "routers: %d\n", routers)
	}
	return b.String()
}

// Below these a trace says little of tomorrow.
const (
	// fewRequests for each replica, and shortTrace: in less, most of what a cache is
	// for has not come again, and one busy minute decides a quantile.
	fewRequests = 100
	shortTrace  = 10 * time.Minute
)
