package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/route"
)

// Options are what policies have to know.
type Options struct {
	// Engine are the replicas' parameters. Policies that keep a record of what is
	// in the caches are told their size, and how fast they prefill.
	Engine engine.Params
	// ConcurrencyThreshold is that of warmpath's policies; 0 is auto.
	ConcurrencyThreshold int
}

// named are the policies by name; those ending with a colon take a number.
var named = []struct {
	name, does string
	policy     func(n int, o Options) Maker
}{
	{"auto", "warmpath, prefixLength: auto", func(_ int, o Options) Maker {
		return NewOwn(route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength, ConcurrencyThreshold: o.ConcurrencyThreshold})
	}},
	{"kv_aware", "warmpath, KV_AWARE", func(_ int, o Options) Maker {
		return NewOwn(route.Policy{Strategy: route.KVAware, ConcurrencyThreshold: o.ConcurrencyThreshold})
	}},
	{"prefix:", "warmpath, a prefixLength of so many characters", func(n int, o Options) Maker {
		return NewOwn(route.Policy{Strategy: route.PrefixAware, PrefixLength: n, ConcurrencyThreshold: o.ConcurrencyThreshold})
	}},
	{"least_outstanding", "warmpath, LEAST_OUTSTANDING_REQUESTS", func(int, Options) Maker {
		return NewOwn(route.Policy{Strategy: route.LeastOutstandingRequests})
	}},
	{"random", "warmpath, RANDOM", func(int, Options) Maker { return NewOwn(route.Policy{Strategy: route.Random}) }},
	{"round_robin", "one after the other", func(int, Options) Maker { return NewRoundRobin }},
	{"two_choices", "the lesser loaded of two at random", func(int, Options) Maker { return NewTwoChoices }},
	{"hash:", "consistent hashing of so many characters, without a bound", func(n int, _ Options) Maker { return NewHash(n/4, 0) }},
	{"bounded:", "the same, at most 1.25 times the mean load", func(n int, _ Options) Maker { return NewHash(n/4, 1.25) }},
	{"kubeai", "KubeAI's prefix hash: bounded:256 stands for its 100 characters", func(int, Options) Maker { return NewHash(ChunkTokens, 1.25) }},
	{"sglang", "SGLang's cache-aware rule with its code's defaults", func(_ int, o Options) Maker { return NewSGLang(o.Engine.KVTokens) }},
	{"sticky", "llm-d's sticky until saturated, for 2 s of prefill", func(_ int, o Options) Maker {
		return NewSticky(o.Engine.KVTokens, 1/o.Engine.PrefillToken.Seconds(), 2)
	}},
	{"lmetric", "uncached tokens times requests", func(_ int, o Options) Maker { return NewLMetric(o.Engine.KVTokens) }},
	{"oracle", "the longest match in the true caches", func(int, Options) Maker { return NewOracle(0) }},
	{"oracle_bounded", "the same, at most 1.25 times the mean load", func(int, Options) Maker { return NewOracle(1.25) }},
}

// Names lists the policies with what they do, a line each.
func Names() string {
	var b strings.Builder
	for _, n := range named {
		name := n.name
		if strings.HasSuffix(name, ":") {
			name += "N"
		}
		fmt.Fprintf(&b, "  %-18s %s\n", name, n.does)
	}
	return b.String()
}

// Named returns a policy by its name.
func Named(name string, o Options) (Maker, error) {
	for _, n := range named {
		number, takes := strings.CutPrefix(name, n.name)
		switch {
		case n.name == name && !strings.HasSuffix(n.name, ":"):
			return n.policy(0, o), nil
		case takes && strings.HasSuffix(n.name, ":"):
			chars, err := strconv.Atoi(number)
			if err != nil || chars < ChunkTokens*4 || chars > route.MaxPrefixLength {
				return nil, fmt.Errorf("policy %q: want a length of %d..%d characters", name, ChunkTokens*4, route.MaxPrefixLength)
			}
			return n.policy(chars, o), nil
		}
	}
	return nil, fmt.Errorf("policy %q: there is none of that name", name)
}
