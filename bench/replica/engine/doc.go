// Package engine is the model of one LLM serving engine: what runs in a step,
// how long the step takes, and what the prefix cache holds.
//
// It is pure: no clock, no I/O, no goroutine, no lock. The replica server waits
// for the durations that [Scheduler] gives; a simulator adds them up instead,
// and may leap over the steps in which nothing but decoding happens.
//
// The model is that of vLLM's V1 engine, simplified:
//
//   - One budget of tokens a step. Running sequences that decode come first,
//     one token each; then the prompt that is prefilled in part; then waiting
//     requests, first come, first served, while the budget, the number of
//     sequences and the KV cache allow. One that does not fit holds up those
//     behind it.
//   - A step takes a fixed time, and more for each token of prefill, each
//     sequence that decodes and each token of their contexts ([Params]).
//   - KV memory is blocks of tokens. Only full blocks are shared; they are found
//     by a hash that covers all before them, when a request is admitted. The last
//     token of a prompt is always computed. A block can be hit from the end of
//     the step that computed it, so equal prompts in one step all miss, and what
//     they compute twice is not merged.
//   - A running request pins its blocks. When it ends they are freed, the tail
//     first, and keep their content until the least recently freed is taken for
//     something else (docs.vllm.ai/design/prefix_caching).
//
// Left out: preemption (the KV of the whole answer is reserved at admission,
// where vLLM takes it block by block and preempts when it runs out), attention's
// quadratic part of prefill, speculation, and the blocks of an answer before its
// end. A token of text is 4 characters.
package engine
