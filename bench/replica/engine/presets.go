package engine

import "time"

// The presets' numbers are from:
//
//   - BLIS, a latency model trained on measured vLLM runs. A step reads the
//     weights once (1.36 times what the memory's bandwidth would need) and takes
//     32 µs a layer, 126 µs and 4.4 µs a request more; reading KV takes 1.95 times
//     what the bandwidth would need. It gives idle steps of 8.5 ms (8B on H100),
//     11 ms (70B, TP8) and 16 ms (32B, TP2), and 15.6 ms of front end a request.
//   - llm-d's calibration of Qwen3-32B on 2 H100: 20,480 tokens/s of prefill,
//     307,328 tokens of KV.
//   - Amazon SageMaker's published times to first token for prompts of 8k tokens
//     on 70B, 280 ms without and 63 ms with the cache: about 37,000 tokens/s.
//   - KV sizes of the others: 0.9 of the GPU's memory less weights, activations
//     (5.5 GiB) and 0.15 (one GPU) or 0.6 GiB (several) a GPU, by 327,680 bytes
//     (70B) or 131,072 bytes (8B) a token.
//   - vLLM's defaults: 8,192 tokens a step and 1,024 sequences from 70 GiB of
//     memory on, 2,048 and 256 below; blocks of 16 tokens.
//
// What each added sequence costs is the least certain: compute time that BLIS
// does not tell apart.

// Llama70B is Llama 3 70B in 16 bits on 8 H100 (TP8), the default replica.
func Llama70B() Params {
	return h100(Params{
		StepTime: 11 * time.Millisecond, PrefillToken: 27 * time.Microsecond,
		DecodeSequence: 15 * time.Microsecond, ContextToken: 24 * time.Nanosecond, KVTokens: 1_250_000,
	})
}

// Qwen32B is Qwen3 32B in 16 bits on 2 H100 (TP2).
func Qwen32B() Params {
	return h100(Params{
		StepTime: 16 * time.Millisecond, PrefillToken: 47 * time.Microsecond,
		DecodeSequence: 20 * time.Microsecond, ContextToken: 76 * time.Nanosecond, KVTokens: 307_328,
	})
}

// Llama8B is Llama 3 8B in 16 bits on one H100.
func Llama8B() Params {
	return h100(Params{
		StepTime: 8500 * time.Microsecond, PrefillToken: 30 * time.Microsecond,
		DecodeSequence: 12 * time.Microsecond, ContextToken: 76 * time.Nanosecond, KVTokens: 430_000,
	})
}

// Llama8BOnL4 is Llama 3.1 8B with weights and KV in 8 bits on one L4 (24 GB,
// 300 GB/s, 242 TFLOPS). It is computed, not measured: BLIS's formula for the
// step and the context, prefill at 0.45 of the peak (6,800 tokens/s), and for a
// sequence the same share of a prefilled token as on H100. KubeAI's published
// saturation without affinity, 46,000 to 48,000 tokens/s on 8 of them, is below
// the peak of 54,000 that this gives, as it should be.
func Llama8BOnL4() Params {
	return Params{
		StepTime: 37500 * time.Microsecond, PrefillToken: 147 * time.Microsecond,
		DecodeSequence: 60 * time.Microsecond, ContextToken: 425 * time.Nanosecond,
		FrontEnd: frontEnd, StepTokens: 2048, MaxSequences: 256, BlockTokens: 16, KVTokens: 165_000,
	}
}

const frontEnd = 16 * time.Millisecond

// h100 adds what is the same on every H100.
func h100(p Params) Params {
	p.FrontEnd, p.StepTokens, p.MaxSequences, p.BlockTokens = frontEnd, 8192, 1024, 16
	return p
}
