// Command research runs policies over all traces.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/bench/sim"
	"github.com/warmpath/warmpath/internal/trace"
)

type workload struct {
	name, format, path string
	cache              int
	speed              float64
	params             engine.Params
}

var workloads = []workload{
	{"mooncake", "mooncake", "mooncake_conversation.jsonl.gz", 5_100_000, 4, engine.Llama70B()},
	{"ragpulse", "ragpulse", "ragpulse", 5_100_000, 1800, engine.Llama70B()},
	{"weka", "weka", "weka_claude_code_63sessions_2h.jsonl.gz", 2_600_000, 15, engine.Llama70B()},
	{"miniswe", "miniswe", "lmcache_miniswe.jsonl.gz", 160_000, 20, engine.Llama8B()},
	{"rhe", "realhumaneval", "realhumaneval_chat.csv.gz", 160_000, 40, engine.Llama8B()},
	{"copilot", "copilot", "copilot_completion.jsonl.gz", 160_000, 100, engine.Llama8B()},
}

func load(w workload) []sim.Job {
	t, err := trace.Open("bench/data/"+w.path, w.format, trace.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	jobs := make([]sim.Job, len(t.Requests))
	for i, r := range t.Requests {
		last := uint64(i)
		if len(r.Chunks) > 0 {
			last = r.Chunks[len(r.Chunks)-1]
		}
		jobs[i] = sim.Job{At: r.Arrival, Tokens: max(r.Input, 1), Output: max(r.Output, 1), Chunks: r.Chunks,
			Whole: xxhash.Sum64String(fmt.Sprint(last, r.Input))}
	}
	return jobs
}

func main() {
	only := flag.String("w", "", "workloads")
	names := flag.String("p", "random,least,p2c,h16,h64,h256,hb64,sgl,sticky,lmetric,oracle", "policies")
	n := flag.Int("n", 8, "replicas")
	routers := flag.Int("r", 1, "routers")
	speed := flag.Float64("s", 1, "speed factor")
	cache := flag.Float64("c", 1, "cache factor")
	seed := flag.Uint64("seed", 1, "seed")
	flag.Parse()
	for _, w := range workloads {
		if *only != "" && !strings.Contains(","+*only+",", ","+w.name+",") {
			continue
		}
		jobs := load(w)
		w.params.KVTokens = int(float64(w.cache) * *cache)
		var wg sync.WaitGroup
		list := strings.Split(*names, ",")
		lines := make([]string, len(list))
		gate := make(chan struct{}, 2)
		for i, p := range list {
			wg.Add(1)
			go func() {
				defer wg.Done()
				gate <- struct{}{}
				defer func() { <-gate }()
				begin := time.Now()
				reps := make([]sim.Replica, *n)
				for i := range reps {
					reps[i].Params = w.params
				}
				r, err := sim.Run(sim.Config{Jobs: jobs, Replicas: reps, Routers: *routers, Policy: sim.Named(p, w.params), Speed: w.speed * *speed, Seed: *seed})
				if err != nil {
					lines[i] = fmt.Sprintf("%-10s %v", p, err)
					return
				}
				lines[i] = fmt.Sprintf("%-9s %-10s hit %5.1f  req %.2f pre %.2f  p50 %7.3f p90 %7.3f p99 %7.3f  over %4.1f%% moved %4.1f%%  (%v)",
					w.name, p, 100*r.HitRate(), r.Busiest(func(s sim.Share) int64 { return s.Requests }), r.Busiest(func(s sim.Share) int64 { return s.Prefill }),
					r.Quantile(.5).Seconds(), r.Quantile(.9).Seconds(), r.Quantile(.99).Seconds(),
					100*float64(r.Overflowed)/float64(max(r.Keyed, 1)), 100*float64(r.Moved)/float64(max(r.Keyed, 1)), time.Since(begin).Round(time.Millisecond))
			}()
		}
		wg.Wait()
		for _, l := range lines {
			fmt.Println(l)
		}
	}
}
