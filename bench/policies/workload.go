package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

// workload is requests, and the fleet that they are for.
type workload struct {
	Name     string  `json:"name"`
	Requests int     `json:"requests"`
	Replicas int     `json:"replicas"`
	Model    string  `json:"model"`
	Cache    int     `json:"cache_tokens"` // of a replica
	Speed    float64 `json:"speed"`
	// Prefixes says that prompts are known to share something.
	Prefixes bool `json:"prefixes"`
	// Loaded says that requests queue: the faster form of a trace, or a rate that was
	// chosen so.
	Loaded bool `json:"loaded"`
	// FewSessions says that there are few and long ones: hits and balance are hard to
	// have together.
	FewSessions bool     `json:"few_sessions,omitempty"`
	Notes       []string `json:"notes,omitempty"`

	params engine.Params
	// jobs are made for a cache of a size; another seed gives other hashes, so other
	// homes, and a generated workload other texts and times.
	jobs func(cache int, seed uint64) ([]sim.Job, error)
}

// traced is a trace with the settings that all policies get.
type traced struct {
	name, format, path, model string
	cache                     int // 0 is the model's
	speed                     float64
	few                       bool // long sessions
}

// allTraces are those of bench/data. One setting for all policies: caches that hold
// a part of what a trace has, and speeds at which requests queue.
func allTraces() []traced {
	return []traced{
		{"mooncake", "mooncake", "mooncake_conversation.jsonl.gz", "llama-70b", 5_100_000, 4, false},
		{"ragpulse", "ragpulse", "ragpulse", "llama-70b", 5_100_000, 1800, false},
		{"weka", "weka", "weka_claude_code_63sessions_2h.jsonl.gz", "llama-70b", 2_600_000, 15, true},
		{"miniswe", "miniswe", "lmcache_miniswe.jsonl.gz", "llama-8b", 160_000, 20, true},
		{"realhumaneval", "realhumaneval", "realhumaneval_chat.csv.gz", "llama-8b", 160_000, 40, false},
		{"copilot", "copilot", "copilot_completion.jsonl.gz", "llama-8b", 160_000, 100, false},
		{"azure-conv", "azure", "azure_2023_conv.csv.gz", "llama-70b", 0, 20, false},
		{"azure-code", "azure", "azure_2023_code.csv.gz", "llama-70b", 0, 20, false},
	}
}

// fleetSize is the number of replicas where nothing else is said.
const fleetSize = 8

func modelParams(model string) engine.Params {
	if model == "llama-8b" {
		return engine.Llama8B()
	}
	return engine.Llama70B()
}

// load reads a trace and returns it as it came and at its speed.
func (t traced) load(folder string) ([]*workload, error) {
	read, err := trace.Open(filepath.Join(folder, t.path), t.format, trace.Options{})
	if err != nil {
		return nil, err
	}
	w := &workload{
		Name: t.name + " ×1", Requests: len(read.Requests), Replicas: fleetSize, Model: t.model, Speed: 1,
		Prefixes: read.BlockTokens > 0, FewSessions: t.few, Notes: read.Notes, params: modelParams(t.model),
		jobs: func(cache int, seed uint64) ([]sim.Job, error) { return jobsOf(read.Requests, cache, seed), nil },
	}
	if t.cache > 0 {
		w.params.KVTokens = t.cache
	}
	w.Cache = w.params.KVTokens
	faster := *w
	faster.Name, faster.Speed, faster.Loaded = fmt.Sprintf("%s ×%g", t.name, t.speed), t.speed, true
	return []*workload{w, &faster}, nil
}

// firstSeed leaves the hashes of a trace as they are, as warmpath simulate does.
const firstSeed = 1

func jobsOf(requests []trace.Request, cache int, seed uint64) []sim.Job {
	jobs := make([]sim.Job, len(requests))
	for i, r := range requests {
		jobs[i], _ = sim.NewJob(i, r.Arrival, r.Input, r.Output, r.Chunks, cache)
	}
	if seed == firstSeed {
		return jobs
	}
	for i := range jobs {
		j := &jobs[i]
		chunks := make([]uint64, len(j.Chunks))
		for k, c := range j.Chunks {
			chunks[k] = rehash(c, seed)
		}
		j.Chunks, j.Whole = chunks, rehash(j.Whole, seed)
	}
	return jobs
}

// rehash maps different hashes to different ones, by the seed.
func rehash(h, seed uint64) uint64 {
	h = (h ^ seed*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	return (h ^ h>>33) * 0xc4ceb9fe1a85ec53
}

// span is the time from the first to the last arrival, at the workload's speed.
func span(jobs []sim.Job, speed float64) time.Duration {
	if len(jobs) == 0 {
		return 0
	}
	return time.Duration(float64(jobs[len(jobs)-1].At-jobs[0].At) / speed)
}
