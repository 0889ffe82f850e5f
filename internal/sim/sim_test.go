package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// chunks of a prompt that is given as words and how many chunks each stands for.
func chunks(parts ...any) (list []uint64) {
	h := uint64(1)
	for i := 0; i < len(parts); i += 2 {
		for j := range parts[i+1].(int) {
			h = xxhash.Sum64String(fmt.Sprint(h, parts[i], j))
			list = append(list, h)
		}
	}
	return list
}

func job(at time.Duration, list []uint64) Job {
	return Job{At: at, Tokens: len(list)*ChunkTokens + 10, Output: 50, Chunks: list, Whole: list[len(list)-1] + 1}
}

// talks are conversations that grow, of users who have one system prompt.
func talks(n, turns int, gap time.Duration) []Job {
	random := rand.New(rand.NewPCG(1, 1))
	var jobs []Job
	at := make([]int, n)
	for i := range n * turns {
		t := random.IntN(n)
		for at[t] == turns {
			t = (t + 1) % n
		}
		at[t]++
		jobs = append(jobs, job(time.Duration(i)*gap, chunks("system", 20, t, 10*at[t])))
	}
	return jobs
}

func fleetOf(n int) []Replica {
	list := make([]Replica, n)
	for i := range list {
		list[i].Params = engine.Llama70B()
	}
	return list
}

func mustRun(t testing.TB, policy string, c Config) Result {
	t.Helper()
	maker, err := Named(policy, Options{Engine: c.Replicas[0].Params})
	if err != nil {
		t.Fatal(err)
	}
	c.Policy = maker
	r, err := Run(c)
	if err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	return r
}

var allPolicies = []string{
	"auto", "kv_aware", "prefix:4096", "least_outstanding", "random", "round_robin", "two_choices", "hash:4096", "bounded:4096",
	"kubeai", "sglang", "sticky", "lmetric", "oracle", "oracle_bounded",
}

// Whatever the policy, every request is served, its tokens are accounted for, and
// the same seed gives the same result.
func TestEveryPolicy(t *testing.T) {
	jobs := talks(40, 8, 50*time.Millisecond)
	var tokens int64
	for _, j := range jobs {
		tokens += int64(j.Tokens)
	}
	for _, policy := range allPolicies {
		for _, routers := range []int{1, 3} {
			t.Run(fmt.Sprint(policy, routers), func(t *testing.T) {
				c := Config{Jobs: jobs, Replicas: fleetOf(5), Routers: routers, Seed: 7}
				r := mustRun(t, policy, c)
				var served, prefilled int64
				for _, s := range r.Shares {
					served, prefilled = served+s.Requests, prefilled+s.Prefill
				}
				if r.Requests != len(jobs) || served != int64(len(jobs)) || len(r.TTFT) != len(jobs) || r.PromptTokens != tokens {
					t.Errorf("%d requests, %d served, %d first tokens, %d prompt tokens, want %d and %d", r.Requests, served, len(r.TTFT), r.PromptTokens, len(jobs), tokens)
				}
				if prefilled != tokens-r.HitTokens {
					t.Errorf("%d tokens prefilled, want %d of %d not found", prefilled, tokens-r.HitTokens, tokens)
				}
				if again := mustRun(t, policy, c); !reflect.DeepEqual(r, again) {
					t.Error("the same seed gives another result")
				}
			})
		}
	}
}

// Conversations behind a common system prompt: auto hits as the oracle does, a
// prefix length within the system prompt overloads one replica, random misses.
func TestAutoFindsTheDepth(t *testing.T) {
	c := Config{Jobs: talks(60, 8, 40*time.Millisecond), Replicas: fleetOf(6), Seed: 1}
	auto, oracle, short, random := mustRun(t, "auto", c), mustRun(t, "oracle", c), mustRun(t, "hash:1024", c), mustRun(t, "random", c)
	requests := func(s Share) int64 { return s.Requests }
	if auto.HitRate() < oracle.HitRate()-0.01 || auto.HitRate() < random.HitRate()+0.2 {
		t.Errorf("hits: auto %.3f, oracle %.3f, random %.3f", auto.HitRate(), oracle.HitRate(), random.HitRate())
	}
	if auto.Busiest(requests) > 2 || short.Busiest(requests) < 5.9 {
		t.Errorf("busiest: auto %.2f, want at most 2; the system prompt as the key %.2f, want all at one", auto.Busiest(requests), short.Busiest(requests))
	}
}

func TestClosedLoop(t *testing.T) {
	jobs := talks(30, 5, 0)
	c := Config{Jobs: jobs, Replicas: fleetOf(3), Clients: 6, Seed: 1}
	r := mustRun(t, "auto", c)
	if r.Requests != len(jobs) {
		t.Errorf("%d requests of %d", r.Requests, len(jobs))
	}
	c.Clients = 12
	if faster := mustRun(t, "auto", c); faster.Elapsed >= r.Elapsed {
		t.Errorf("12 clients take %v, 6 take %v", faster.Elapsed, r.Elapsed)
	}
}

func TestEvents(t *testing.T) {
	jobs := talks(40, 10, 30*time.Millisecond)
	c := Config{Jobs: jobs, Replicas: fleetOf(4), Seed: 1, Window: 3 * time.Second, Events: []Event{
		{At: 3 * time.Second, Kind: Add}, {At: 5 * time.Second, Kind: Crash, Replica: 0}, {At: 8 * time.Second, Kind: Remove, Replica: 1},
	}}
	for _, policy := range allPolicies {
		r := mustRun(t, policy, c)
		if r.Requests != len(jobs) || len(r.Shares) != 5 || r.Shares[4].Requests == 0 && !strings.HasPrefix(policy, "oracle") {
			t.Errorf("%s: %d requests of %d, shares %v", policy, r.Requests, len(jobs), r.Shares)
		}
		var prompt int64
		for _, w := range r.Windows {
			prompt += w.Prompt
			if w.Hit > w.Prompt {
				t.Errorf("%s: window %+v", policy, w)
			}
		}
		if prompt < r.PromptTokens*9/10 {
			t.Errorf("%s: windows have %d of %d tokens", policy, prompt, r.PromptTokens)
		}
	}
}

// Leaping over decode steps changes nothing: a fleet whose replicas are never alone
// gives the same as one where each is simulated with another arrival order.
func TestRunsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Job
		at := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "jobs") {
			at += time.Duration(rapid.IntRange(0, 400).Draw(t, "gap")) * time.Millisecond
			list := chunks("p", rapid.IntRange(0, 3).Draw(t, "shared"), rapid.IntRange(0, 9).Draw(t, "own"), rapid.IntRange(1, 60).Draw(t, "chunks"))
			j := job(at, list)
			j.Output = rapid.IntRange(1, 300).Draw(t, "output")
			jobs = append(jobs, j)
		}
		policy := rapid.SampledFrom(allPolicies).Draw(t, "policy")
		maker, _ := Named(policy, Options{Engine: engine.Llama70B()})
		r, err := Run(Config{Jobs: jobs, Replicas: fleetOf(rapid.IntRange(1, 4).Draw(t, "replicas")), Policy: maker, Clients: rapid.IntRange(0, 5).Draw(t, "clients")})
		if err != nil || r.Requests != len(jobs) {
			t.Fatalf("%s: %d of %d requests (%v)", policy, r.Requests, len(jobs), err)
		}
	})
}

func TestNamed(t *testing.T) {
	for _, name := range []string{"", "autos", "prefix", "prefix:", "prefix:x", "prefix:255", "prefix:65537", "hash:-1"} {
		if _, err := Named(name, Options{Engine: engine.Llama70B()}); err == nil {
			t.Errorf("%q is a policy", name)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestQuantiles(t *testing.T) {
	r := Result{TTFT: []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Shares: []Share{{Requests: 6}, {Requests: 2}}}
	if r.Quantile(.5) != 6 || r.Quantile(.9) != 10 || r.Quantile(1) != 10 || new(Result).Quantile(.5) != 0 {
		t.Error(r.Quantile(.5), r.Quantile(.9), r.Quantile(1))
	}
	if got := r.Busiest(func(s Share) int64 { return s.Requests }); got != 1.5 {
		t.Error(got)
	}
}
