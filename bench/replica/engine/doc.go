// Package engine is the arithmetic of one LLM serving engine: what its prefix
// cache holds and how long a prefill and a decode step take.
//
// It is pure: no clock, no I/O, no goroutine, no lock. The replica server
// sleeps for the durations it gives; a simulator adds them up instead.
//
// The model is that of vLLM's automatic prefix caching and step scheduler,
// simplified. A token is 4 characters of the rendered prompt, a block is 16
// tokens, and only full blocks are cached (docs.vllm.ai/design/prefix_caching).
package engine
