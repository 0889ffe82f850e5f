// Package replica is a model server without a model: it speaks the HTTP API of
// vLLM, keeps a prefix cache like vLLM's and takes the time that a GPU would
// take, but sleeps instead of computing. Hundreds fit into one process.
//
// It answers POST /v1/chat/completions, /v1/completions, /v1/responses,
// /v1/messages, /v1/embeddings, /invocations and /endpoints/{name}/invocations,
// plain and as server-sent events, /endpoints/{name}/invocations-response-stream
// in Amazon's event stream encoding, and GET /health and /v1/models. As vLLM does,
// it sends the response headers of a stream at once, long before the first token.
//
// What really happened is at GET /stats (totals) and /stats/requests (the last
// 10,000 requests), reset by POST /stats/reset. Request headers make a replica
// misbehave on purpose; see [Control].
//
// Time: a request spends the front-end time, waits for its turn (first come,
// first served: one prefill at a time), is prefilled for the tokens that the
// cache does not hold, and then decodes a token a step together with the other
// running requests. A decode step never ends before the prefill in progress,
// because both are parts of one engine step. Left out: preemption, a limit on
// running sequences, and the slowing of prefill by the decodes in its steps.
package replica
