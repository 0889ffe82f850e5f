package main

import (
	"fmt"

	"github.com/warmpath/warmpath/bench/load"
)

// scale is how much is measured. With the model's tokenizer a character is a token.
type scale struct {
	// prefixes are used so many times each, in random order. Their lengths go from
	// shortest to longest in equal steps, in characters.
	prefixes, uses    int
	shortest, longest int
	// burst requests of one prefix are sent at once, each for an answer of
	// burstTokens.
	burst, burstTokens int
	// leastGain is how many times lower the mean time to the first token has to be.
	leastGain float64
}

const (
	questionChars = 60
	answerTokens  = 8
)

// full takes about two minutes of two cores that have nothing else to do. Its prefixes are
// as many as one replica holds: round robin needs all of them at each, homes a third.
func full() scale {
	return scale{prefixes: 6, uses: 10, shortest: 2000, longest: 4000, burst: 12, burstTokens: 128, leastGain: 3}
}

// brief takes about 40 s. With half the uses there is half as much to gain, and short
// prefixes all stay in the caches.
func brief() scale {
	return scale{prefixes: 8, uses: 5, shortest: 1000, longest: 2000, burst: 6, burstTokens: 32, leastGain: 1.3}
}

// workload is what is sent.
type workload struct {
	scale
	// lengths are those of the prefixes.
	lengths  []int
	requests []load.Request
	bursts   []burst
}

// burst is requests of one prefix of their own: one that warms it, and then those that
// come at once.
type burst struct {
	threshold int // concurrencyThreshold; 0 is auto
	first     load.Request
	rest      []load.Request
}

// The bursts: by what follows the load of the fleet, by what the engine computes at
// once, and without a bound.
var thresholds = [...]int{0, slots, 1000}

func (b burst) name() string {
	if b.threshold == 0 {
		return "auto"
	}
	return fmt.Sprint(b.threshold)
}

func (s scale) workload(seed uint64) (workload, error) {
	w := workload{scale: s}
	shared := load.Shared{Prefixes: s.prefixes, Uses: s.uses, PrefixChars: s.longest, SuffixChars: questionChars, Seed: seed}
	prompts, err := shared.Prompts()
	if err != nil {
		return w, err
	}
	for p := range s.prefixes {
		w.lengths = append(w.lengths, s.shortest+(s.longest-s.shortest)*p/max(s.prefixes-1, 1))
	}
	for i := range prompts {
		m := &prompts[i].Messages[0]
		m.Content = m.Content[:w.lengths[prompts[i].Prefix]]
	}
	chat := load.Kind{API: load.Chat, Model: modelName, Stream: true, OutputTokens: answerTokens}
	if w.requests, err = chat.Requests(prompts); err != nil {
		return w, err
	}
	w.bursts, err = s.makeBursts(seed + 1)
	return w, err
}

// makeBursts gives each threshold a prefix that nobody has.
func (s scale) makeBursts(seed uint64) ([]burst, error) {
	shared := load.Shared{Prefixes: len(thresholds), Uses: s.burst + 1, PrefixChars: s.longest, SuffixChars: questionChars, Seed: seed}
	prompts, err := shared.Prompts()
	if err != nil {
		return nil, err
	}
	chat := load.Kind{API: load.Chat, Model: modelName, Stream: true, OutputTokens: s.burstTokens}
	requests, err := chat.Requests(prompts)
	if err != nil {
		return nil, err
	}
	bursts := make([]burst, len(thresholds))
	for i, t := range thresholds {
		bursts[i].threshold = t
		for _, r := range requests {
			if r.Prefix != i {
				continue
			}
			if bursts[i].first.Body == nil {
				bursts[i].first = r
				continue
			}
			bursts[i].rest = append(bursts[i].rest, r)
		}
	}
	return bursts, nil
}

// ceiling is the share of the requests that any routing can have served warm: all but
// the first of each prefix.
func (s scale) ceiling() float64 { return float64(s.uses-1) / float64(s.uses) }

// warm reports whether the engine has found a request's prefix in its cache: four
// fifths of the prompt's tokens at least, for some that all requests begin with are
// always there.
func warm(o load.Outcome) bool { return 10*o.CachedTokens >= 8*o.PromptTokens }
