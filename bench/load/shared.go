package load

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Shared describes a workload of prefixes that several requests share, as
// system prompts, documents and few-shot examples are.
type Shared struct {
	// Prefixes is the number of different prefixes, Uses the mean number of
	// requests for each: the workload has Prefixes × Uses requests.
	Prefixes, Uses int
	// PrefixChars and SuffixChars are the lengths of what is shared and what is not.
	PrefixChars, SuffixChars int
	// CommonChars is the length of what all prompts begin with, before their prefix;
	// 0 is nothing.
	CommonChars int
	// Skew is the exponent s of the popularity 1/rank^s (Zipf). 0 gives every
	// prefix exactly Uses requests.
	Skew float64
	// Seed makes the workload; equal values make equal workloads.
	Seed uint64
}

// Validate reports every field that is out of its range.
func (s Shared) Validate() error {
	err := atLeast(
		bound{"Prefixes", s.Prefixes, 1}, bound{"Uses", s.Uses, 1},
		bound{"PrefixChars", s.PrefixChars, minChars}, bound{"SuffixChars", s.SuffixChars, minChars},
		bound{"CommonChars", s.CommonChars, 0},
	)
	if !(s.Skew >= 0 && s.Skew <= 10) {
		err = errors.Join(err, fmt.Errorf("skew %v: want 0 to 10", s.Skew))
	}
	return err
}

// bound is the smallest value of a field.
type bound struct {
	name            string
	value, smallest int
}

func atLeast(bounds ...bound) error {
	var errs []error
	for _, b := range bounds {
		if b.value < b.smallest {
			errs = append(errs, fmt.Errorf("%s %d: want %d or more", b.name, b.value, b.smallest))
		}
	}
	return errors.Join(errs...)
}

// Prompts returns the prompts in a random order, the prefixes interleaved: a
// system message that is shared and a user's that is not.
func (s Shared) Prompts() ([]Prompt, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("shared-prefix workload: %w", err)
	}
	random := newRandom(s.Seed)
	common := ""
	if s.CommonChars > 0 {
		common = randomText(random, "Rules.", s.CommonChars)
	}
	prefixes := make([]string, s.Prefixes)
	for i := range prefixes {
		prefixes[i] = common + randomText(random, fmt.Sprintf("Manual %d.", i), s.PrefixChars)
	}
	order := s.order(random)
	prompts := make([]Prompt, len(order))
	for i, p := range order {
		question := randomText(random, fmt.Sprintf("Question %d.", i), s.SuffixChars)
		prompts[i] = Prompt{Prefix: p, Messages: []Message{{"system", prefixes[p]}, {"user", question}}}
	}
	return prompts, nil
}

// order returns the prefix of each request.
func (s Shared) order(random *rand.Rand) []int {
	if s.Skew == 0 {
		return shuffledUses(random, s.Prefixes, s.Uses)
	}
	order := make([]int, s.Prefixes*s.Uses)
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
