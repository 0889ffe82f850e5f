package engine

import (
	"errors"
	"fmt"
	"time"
)

// Params are the speed and the size of one replica.
type Params struct {
	// StepTime is the time of an engine step that does nothing else (T0).
	StepTime time.Duration
	// PrefillToken is what each prefilled token adds to a step (Tp).
	PrefillToken time.Duration
	// DecodeSequence is what each sequence that decodes adds to a step (Td).
	DecodeSequence time.Duration
	// ContextToken is what each token of the contexts of the sequences that
	// decode adds to a step (Tk).
	ContextToken time.Duration
	// FrontEnd is the time a request spends outside the engine before its first
	// token: HTTP, tokenizer, detokenizer. It does not occupy the engine, and the
	// [Scheduler] does not know it: who submits a request does so that much later.
	FrontEnd time.Duration
	// StepTokens is the budget of tokens a step, max_num_batched_tokens; at least
	// MaxSequences.
	StepTokens int
	// MaxSequences bounds the running requests, max_num_seqs; at least 1.
	MaxSequences int
	// BlockTokens is the size of a block of the KV cache, at least 1. It is 16 in
	// vLLM on GPUs; traces are hashed in blocks of 64 or 512.
	BlockTokens int
	// KVTokens is the capacity of the KV cache in tokens, at least one block; what
	// does not fill a block is lost.
	KVTokens int
}

// Validate reports every value that is out of its range.
func (p Params) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"StepTime", p.StepTime},
		{"PrefillToken", p.PrefillToken},
		{"DecodeSequence", p.DecodeSequence},
		{"ContextToken", p.ContextToken},
		{"FrontEnd", p.FrontEnd},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s %v: want 0 or more", d.name, d.value))
		}
	}
	if p.MaxSequences < 1 {
		errs = append(errs, fmt.Errorf("MaxSequences %d: want 1 or more", p.MaxSequences))
	}
	if p.StepTokens < max(p.MaxSequences, 1) {
		errs = append(errs, fmt.Errorf("StepTokens %d: want one or more for each of %d sequences", p.StepTokens, p.MaxSequences))
	}
	if p.BlockTokens < 1 {
		errs = append(errs, fmt.Errorf("BlockTokens %d: want 1 or more", p.BlockTokens))
	}
	if p.KVTokens < max(p.BlockTokens, 1) {
		errs = append(errs, fmt.Errorf("KVTokens %d: want at least one block of %d", p.KVTokens, p.BlockTokens))
	}
	return errors.Join(errs...)
}

// Step is the time of one engine step that prefills prefillTokens tokens while
// decodes sequences with contextTokens tokens in all decode one token each.
func (p Params) Step(prefillTokens, decodes, contextTokens int) time.Duration {
	return p.StepTime + time.Duration(prefillTokens)*p.PrefillToken +
		time.Duration(decodes)*p.DecodeSequence + time.Duration(contextTokens)*p.ContextToken
}

// Prefill is the time the engine works on a prompt of which uncached tokens
// are not in the cache, when it does nothing else: as many steps as the budget
// makes of them, at least one.
func (p Params) Prefill(uncached int) time.Duration {
	steps := max(1, (uncached+p.StepTokens-1)/p.StepTokens)
	return time.Duration(steps)*p.StepTime + time.Duration(uncached)*p.PrefillToken
}

// DecodeStep is the time between two tokens of a sequence while running
// sequences with contextTokens tokens in all decode together, and nothing is
// prefilled.
func (p Params) DecodeStep(running, contextTokens int) time.Duration {
	return p.Step(0, running, contextTokens)
}

// decodeSteps is the time of n steps in a row in which only the same sequences
// decode: each step makes every context one token longer.
func (p Params) decodeSteps(n, running, contextTokens int) time.Duration {
	grown := time.Duration(n) * time.Duration(n-1) / 2 * time.Duration(running)
	return time.Duration(n)*p.DecodeStep(running, contextTokens) + grown*p.ContextToken
}
