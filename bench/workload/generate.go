package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
)

// Request is one streaming chat completion.
type Request struct {
	// Prefix numbers the group of requests that share System, from 0.
	Prefix int
	// System is the shared beginning, User the part of this request alone.
	System, User string
	// OutputTokens is the answer's length, sent as max_tokens.
	OutputTokens int
}

// Shared describes a workload of prefixes that several requests share, as
// system prompts, documents and few-shot examples are.
type Shared struct {
	// Prefixes is the number of different prefixes, Uses the mean number of
	// requests for each: the workload has Prefixes × Uses requests.
	Prefixes, Uses int
	// PrefixChars and SuffixChars are the lengths of System and User.
	PrefixChars, SuffixChars int
	// OutputTokens is the length of every answer.
	OutputTokens int
	// Skew is the exponent s of the popularity 1/rank^s (Zipf). 0 gives every
	// prefix exactly Uses requests.
	Skew float64
	// Seed makes the workload; equal values make equal workloads.
	Seed uint64
}

// The shortest texts that are still different from one another.
const minChars = 16

// Validate reports every field that is out of its range.
func (s Shared) Validate() error {
	var errs []error
	for _, f := range []struct {
		name     string
		value    int
		smallest int
	}{
		{"Prefixes", s.Prefixes, 1},
		{"Uses", s.Uses, 1},
		{"PrefixChars", s.PrefixChars, minChars},
		{"SuffixChars", s.SuffixChars, minChars},
		{"OutputTokens", s.OutputTokens, 1},
	} {
		if f.value < f.smallest {
			errs = append(errs, fmt.Errorf("%s %d: want %d or more", f.name, f.value, f.smallest))
		}
	}
	if !(s.Skew >= 0 && s.Skew <= 10) {
		errs = append(errs, fmt.Errorf("skew %v: want 0 to 10", s.Skew))
	}
	return errors.Join(errs...)
}

// SharedPrefix returns the requests in a random order, the prefixes interleaved.
func SharedPrefix(s Shared) ([]Request, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("shared-prefix workload: %w", err)
	}
	random := rand.New(rand.NewPCG(s.Seed, 0))
	prefixes := make([]string, s.Prefixes)
	for i := range prefixes {
		prefixes[i] = randomText(random, fmt.Sprintf("Manual %d.", i), s.PrefixChars)
	}
	order := s.order(random)
	requests := make([]Request, len(order))
	for i, p := range order {
		requests[i] = Request{
			Prefix: p, System: prefixes[p], OutputTokens: s.OutputTokens,
			User: randomText(random, fmt.Sprintf("Question %d.", i), s.SuffixChars),
		}
	}
	return requests, nil
}

// order returns the prefix of each request.
func (s Shared) order(random *rand.Rand) []int {
	order := make([]int, s.Prefixes*s.Uses)
	if s.Skew == 0 {
		for i := range order {
			order[i] = i % s.Prefixes
		}
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		return order
	}
	cumulative := make([]float64, s.Prefixes)
	sum := 0.0
	for rank := range cumulative {
		sum += math.Pow(float64(rank+1), -s.Skew)
		cumulative[rank] = sum
	}
	for i := range order {
		order[i] = min(sort.SearchFloat64s(cumulative, random.Float64()*sum), s.Prefixes-1)
	}
	return order
}

var vocabulary = strings.Fields(`the wheel turns slowly under a load that nobody measured because each bearing
	was chosen for rain and salt while our drawings show only summer roads so check torque oil chain brake cable spoke
	lamp frame pedal saddle rim tyre valve pump key lock bell rack`)

// randomText returns head and random words, cut to the length.
func randomText(random *rand.Rand, head string, chars int) string {
	var b strings.Builder
	b.Grow(chars + minChars)
	b.WriteString(head)
	for b.Len() < chars {
		b.WriteByte(' ')
		b.WriteString(vocabulary[random.IntN(len(vocabulary))])
	}
	return b.String()[:chars]
}
