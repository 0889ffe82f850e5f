package engine

import (
	"errors"
	"fmt"
	"time"
)

// Params are the speed and the size of one replica.
//
// The sources of the presets' numbers:
//   - the step time's form and its coefficients: BLIS, trained on measured vLLM
//     runs (weights read once a step, 32 µs a layer, 126 µs a step, 4.4 µs a
//     request, KV read a step), which gives 8.5, 16 and 11 ms for an idle step;
//   - prefill speed: llm-d's calibration of Qwen3-32B on 2 H100 (20,480 tokens/s)
//     and, for 70B, the 280 → 63 ms that SageMaker publishes for 8k tokens
//     (about 37,000 tokens/s);
//   - KV size: 0.9 of the GPU memory less weights and activations (70B, 8B);
//     measured by llm-d (32B: 307,328 tokens).
type Params struct {
	// StepTime is the time of an engine step that does nothing else (T0).
	StepTime time.Duration
	// PrefillToken is what each prefilled token adds to a step (Tp).
	PrefillToken time.Duration
	// DecodeSequence is what each running sequence adds to a step (Td).
	DecodeSequence time.Duration
	// ContextToken is what each token of the running contexts adds to a step (Tk).
	ContextToken time.Duration
	// FrontEnd is the time a request spends outside the engine before its first
	// token: HTTP, tokenizer, detokenizer. It does not occupy the engine.
	FrontEnd time.Duration
	// StepTokens is the budget of prefill tokens a step, max_num_batched_tokens.
	StepTokens int
	// KVTokens is the capacity of the prefix cache in tokens.
	KVTokens int
}

// Llama70B is a 70B model on 8 H100 (TP8), the default replica.
func Llama70B() Params {
	return Params{
		StepTime: 11 * time.Millisecond, PrefillToken: 27 * time.Microsecond,
		DecodeSequence: 15 * time.Microsecond, ContextToken: 24 * time.Nanosecond,
		FrontEnd: 16 * time.Millisecond, StepTokens: 8192, KVTokens: 1_250_000,
	}
}

// Qwen32B is a 32B model on 2 H100 (TP2).
func Qwen32B() Params {
	return Params{
		StepTime: 16 * time.Millisecond, PrefillToken: 47 * time.Microsecond,
		DecodeSequence: 20 * time.Microsecond, ContextToken: 76 * time.Nanosecond,
		FrontEnd: 16 * time.Millisecond, StepTokens: 8192, KVTokens: 307_328,
	}
}

// Llama8B is an 8B model on one H100.
func Llama8B() Params {
	return Params{
		StepTime: 8500 * time.Microsecond, PrefillToken: 30 * time.Microsecond,
		DecodeSequence: 12 * time.Microsecond, ContextToken: 76 * time.Nanosecond,
		FrontEnd: 16 * time.Millisecond, StepTokens: 8192, KVTokens: 430_000,
	}
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
	if p.StepTokens < 1 {
		errs = append(errs, fmt.Errorf("StepTokens %d: want 1 or more", p.StepTokens))
	}
	if p.KVTokens < BlockTokens {
		errs = append(errs, fmt.Errorf("KVTokens %d: want at least one block of %d", p.KVTokens, BlockTokens))
	}
	return errors.Join(errs...)
}

// Prefill is the time the engine works on a prompt of which uncached tokens
// are not in the cache: as many steps as the budget makes of them, at least one.
func (p Params) Prefill(uncached int) time.Duration {
	steps := max(1, (uncached+p.StepTokens-1)/p.StepTokens)
	return time.Duration(steps)*p.StepTime + time.Duration(uncached)*p.PrefillToken
}

// DecodeStep is the time between two tokens of a sequence while running
// sequences with contextTokens tokens in all decode together.
func (p Params) DecodeStep(running, contextTokens int) time.Duration {
	return p.StepTime + time.Duration(running)*p.DecodeSequence + time.Duration(contextTokens)*p.ContextToken
}
