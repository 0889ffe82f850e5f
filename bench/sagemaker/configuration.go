package main

import (
	"fmt"

	"github.com/warmpath/warmpath/bench/load"
)

// The strategies, under SageMaker's names; autoAware is PREFIX_AWARE with the
// prefix length that warmpath finds by itself.
const (
	random = "RANDOM"
	least  = "LEAST_OUTSTANDING_REQUESTS"
	aware  = "PREFIX_AWARE"

	autoAware = "PREFIX_AWARE, auto"
)

// configuration is one of the ways in which the experiment is run, with every
// strategy.
type configuration struct {
	Workload workload `json:"workload"`
	// Open is an open loop, else it is a closed one.
	Open   bool     `json:"open_loop"`
	API    load.API `json:"api"`
	Stream bool     `json:"stream"`

	strategies []string
	published  published
}

// published are the ranges of the announcement, of changes in %, and its hit rates
// with RANDOM and PREFIX_AWARE in %.
type published struct {
	P50, P90, Throughput [2]float64
	HitRate              [2]float64
}

// configurations are those of the announcement as far as they differ here. Its 16
// are {native, OpenAI} API x {streamed, not} x {long, short} x {one model,
// inference components}. APIs and streaming differ in how a prompt is found and how
// an answer passes, for short prompts as for long ones: they are compared with the
// long. Components of one copy an instance route like one model.
func (s scale) configurations() []configuration {
	long, short := s.long(), s.short()
	all, two := []string{random, least, aware, autoAware}, []string{random, aware, autoAware}
	longPublished := published{P50: [2]float64{-77, -71}, P90: [2]float64{-37, -33}, Throughput: [2]float64{15, 16}, HitRate: [2]float64{25, 82}}
	shortPublished := published{P50: [2]float64{-16, -13}, P90: [2]float64{-37, -24}, Throughput: [2]float64{1.7, 2}, HitRate: [2]float64{30, 80}}
	return []configuration{
		{long, true, load.Chat, true, all, longPublished},
		{long, false, load.Chat, true, all, longPublished},
		{short, true, load.Chat, true, all, shortPublished},
		{short, false, load.Chat, true, all, shortPublished},
		{long, true, load.Chat, false, two, longPublished},
		{long, true, load.Invoke, true, two, longPublished},
		{long, true, load.Invoke, false, two, longPublished},
	}
}

func (c configuration) String() string {
	loop := fmt.Sprintf("closed loop of %d in flight", c.Workload.InFlight)
	if c.Open {
		loop = fmt.Sprintf("open loop of %g requests/s", c.Workload.Rate)
	}
	answers := "not streamed"
	if c.Stream {
		answers = "streamed"
	}
	api := "chat completions"
	if c.API == load.Invoke {
		api = "native invoke"
	}
	return fmt.Sprintf("%s, %s, %s, %s", c.Workload.Name, loop, api, answers)
}

// requests makes the requests of a seed.
func (c configuration) requests(seed uint64) ([]load.Request, error) {
	prompts, err := c.Workload.prompts(seed)
	if err != nil {
		return nil, err
	}
	kind := load.Kind{API: c.API, Model: "llama-70b", Stream: c.Stream, OutputTokens: c.Workload.OutputTokens}
	return kind.Requests(prompts)
}

// load is how the requests are sent to replicas of that speed.
func (c configuration) load(timeScale float64, seed uint64) load.Load {
	if c.Open {
		return load.Load{Rate: c.Workload.Rate * timeScale, Seed: seed}
	}
	return load.Load{Concurrency: c.Workload.InFlight}
}
