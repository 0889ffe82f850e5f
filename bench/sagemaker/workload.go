package main

import (
	"fmt"

	"github.com/warmpath/warmpath/bench/load"
)

// workload is what is asked, and how fast. Rates are in simulated time.
type workload struct {
	Name string `json:"name"`
	// Says is the generator in words.
	Says string `json:"says"`
	// OutputTokens is the length of every answer.
	OutputTokens int `json:"output_tokens"`
	// PrefixLength is that of PREFIX_AWARE: characters of text, bytes of a body in
	// the native API.
	PrefixLength int `json:"prefix_length"`
	// Rate is the open loop's, in requests a second; InFlight the closed loop's.
	Rate     float64 `json:"rate"`
	InFlight int     `json:"in_flight"`

	prompts func(seed uint64) ([]load.Prompt, error)
}

// The lengths of the long workload, in tokens of four characters. The announcement
// names only the first.
const (
	documentTokens = 8000
	questionTokens = 400
)

// long is documents that several users ask about: the announcement's prefixes of
// 8k tokens. From 25 % of hits at random and 82 % by prefix on 7 instances follow
// 5.3 uses of each (1 - 1/5.3 = 0.81). The generator gives every document 6, in
// random order, and the end of the list is cut off to have 5.3 in the mean.
func (s scale) long() workload {
	n := s.documents * 53 / 10
	documents := load.Shared{
		Prefixes: s.documents, Uses: 6, PrefixChars: s.documentTokens * charsPerToken, SuffixChars: questionTokens * charsPerToken,
	}
	return workload{
		Name: "long",
		Says: fmt.Sprintf("%d documents of %d tokens in random order, 5.3 questions of %d tokens about each in the mean, answers of %d tokens",
			s.documents, s.documentTokens, questionTokens, s.longAnswer),
		OutputTokens: s.longAnswer, PrefixLength: 4096, Rate: s.longRate, InFlight: s.longInFlight,
		prompts: func(seed uint64) ([]load.Prompt, error) {
			documents.Seed = seed
			prompts, err := documents.Prompts()
			return prompts[:min(n, len(prompts))], err
		},
	}
}

// turnTokens is the length of a user's message and of an answer in the short
// workload.
const turnTokens = 100

// short is conversations without a system prompt, as in ShareGPT, of equal
// lengths: with 10 turns 80 % of the text was said before, the hit rate of the
// announcement.
func (s scale) short() workload {
	conversations := load.Conversations{
		Count: s.conversations, Turns: s.turns, UserChars: turnTokens * charsPerToken, AnswerChars: turnTokens * charsPerToken,
	}
	return workload{
		Name: "short",
		Says: fmt.Sprintf("%d conversations of %d turns, interleaved at random; messages and answers of %d tokens, no system prompt",
			s.conversations, s.turns, turnTokens),
		OutputTokens: min(turnTokens, s.longAnswer), PrefixLength: 1024, Rate: s.shortRate, InFlight: s.shortInFlight,
		prompts: func(seed uint64) ([]load.Prompt, error) {
			conversations.Seed = seed
			return conversations.Prompts()
		},
	}
}

// charsPerToken is that of the replicas.
const charsPerToken = 4
