package main

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/sim"
)

// The sizes of SageMaker's experiment, as bench/sagemaker repeats it, in tokens.
const (
	instances      = 7
	documentTokens = 8000
	questionTokens = 400
	longAnswer     = 200
	turnTokens     = 100
	// The closed loops: some 3 and 2 requests run on each replica.
	longInFlight  = 24
	shortInFlight = 14
)

// published are SageMaker's two workloads, by how large they are made here.
type published struct{ documents, conversations, turns int }

// long is documents that 5.3 users ask about in the mean.
func (p published) long() *workload {
	return generatedWorkload("SageMaker long", longAnswer, func(seed uint64) ([]load.Prompt, error) {
		prompts, err := load.Shared{
			Prefixes: p.documents, Uses: 6, PrefixChars: documentTokens * engine.CharsPerToken, SuffixChars: questionTokens * engine.CharsPerToken, Seed: seed,
		}.Prompts()
		return prompts[:min(p.documents*53/10, len(prompts))], err
	})
}

// short is conversations without a system prompt.
func (p published) short() *workload {
	return generatedWorkload("SageMaker short", turnTokens, func(seed uint64) ([]load.Prompt, error) {
		return load.Conversations{
			Count: p.conversations, Turns: p.turns, UserChars: turnTokens * engine.CharsPerToken, AnswerChars: turnTokens * engine.CharsPerToken, Seed: seed,
		}.Prompts()
	})
}

// generatedWorkload has its requests arrive at random, one a second in the mean;
// the speed makes it another rate.
func generatedWorkload(name string, answer int, prompts func(seed uint64) ([]load.Prompt, error)) *workload {
	w := &workload{Name: name, Replicas: instances, Model: "llama-70b", Speed: 1, Prefixes: true, Loaded: true, params: engine.Llama70B()}
	w.Cache = w.params.KVTokens
	type made struct {
		cache int
		seed  uint64
	}
	known := make(map[made][]sim.Job) // one a round; making texts takes longer than simulating
	w.jobs = func(cache int, seed uint64) ([]sim.Job, error) {
		if jobs, ok := known[made{cache, seed}]; ok {
			return jobs, nil
		}
		list, err := prompts(seed)
		if err != nil {
			return nil, err
		}
		requests, err := load.Kind{API: load.Chat}.Requests(list)
		if err != nil {
			return nil, err
		}
		arrivals := rand.New(rand.NewPCG(seed, 2))
		jobs := make([]sim.Job, len(requests))
		at := time.Duration(0)
		for i, q := range requests {
			p, err := replica.PromptOf(q.Body, sim.ChunkTokens)
			if err != nil {
				return nil, err
			}
			at += time.Duration(arrivals.ExpFloat64() * float64(time.Second))
			jobs[i], _ = sim.NewJob(i, at, p.Tokens, answer, p.Blocks, cache)
		}
		known[made{cache, seed}] = jobs
		return jobs, nil
	}
	return w
}

// ceiling is the hit rate of one cache for all that loses nothing, 0..1: an engine
// computes the last token of a prompt in any case, and with it the chunk that it is
// in.
func ceiling(jobs []sim.Job) float64 {
	seen := make(map[uint64]bool)
	tokens, hit := 0, 0
	for i := range jobs {
		j := &jobs[i]
		tokens += j.Tokens
		for k, c := range j.Chunks {
			if seen[c] && (k+1)*sim.ChunkTokens < j.Tokens {
				hit += sim.ChunkTokens
			}
			seen[c] = true
		}
	}
	return float64(hit) / float64(max(tokens, 1))
}

// hotPrefix is traffic of which one prefix has 1 % for some seconds, then 60 %, then
// 1 % again.
type hotPrefix struct {
	rate              float64 // requests a second
	calm, hot, cooled int     // seconds
}

// The parts of the traffic and the lengths, in tokens.
const (
	hotShare, coolShare          = 0.6, 0.01
	hotTokens, ownTokens, answer = 2048, 256, 100
)

func (h hotPrefix) seconds() int { return h.calm + h.hot + h.cooled }

// jobs returns the requests, and tells which have the prefix. With whole it is all of
// the prompt, else a question follows.
func (h hotPrefix) jobs(seed uint64, whole bool) (jobs []sim.Job, isHot map[*sim.Job]bool) {
	random := rand.New(rand.NewPCG(seed, 3))
	isHot = make(map[*sim.Job]bool)
	var hot []int
	end := time.Duration(h.seconds()) * time.Second
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() / h.rate * float64(time.Second))
		if at >= end {
			break
		}
		share := coolShare
		if s := int(at.Seconds()); s >= h.calm && s < h.calm+h.hot {
			share = hotShare
		}
		n := len(jobs)
		first, own := uint64(n), uint64(n)
		if random.Float64() < share {
			hot = append(hot, n)
			first = 1 << 40
			if whole {
				own = first
			}
		}
		chunks := chainOf(seed, first, hotTokens, own)
		j, _ := sim.NewJob(int(own), at, len(chunks)*sim.ChunkTokens+1, answer, chunks, engine.Llama70B().KVTokens)
		jobs = append(jobs, j)
	}
	for _, n := range hot {
		isHot[&jobs[n]] = true
	}
	return jobs, isHot
}

// chainOf returns the hashes of a prompt: so many tokens of one text, then of
// another.
func chainOf(seed, first uint64, tokens int, second uint64) (chunks []uint64) {
	var b [32]byte
	h := seed
	for i := range (tokens + ownTokens) / sim.ChunkTokens {
		text := first
		if i >= tokens/sim.ChunkTokens {
			text = second
		}
		binary.LittleEndian.PutUint64(b[:], h)
		binary.LittleEndian.PutUint64(b[8:], text)
		binary.LittleEndian.PutUint64(b[16:], uint64(i))
		h = xxhash.Sum64(b[:])
		chunks = append(chunks, h)
	}
	return chunks
}
