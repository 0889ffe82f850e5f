// Package replica is a model server without a model: it speaks the HTTP API of
// vLLM, keeps a prefix cache like vLLM's and takes the time that a GPU would
// take, but sleeps instead of computing. Hundreds fit into one process.
//
// It answers POST /v1/chat/completions, /v1/completions, /v1/responses,
// /v1/messages, /v1/embeddings, /invocations and /endpoints/{name}/invocations,
// plain and as server-sent events, /endpoints/{name}/invocations-response-stream
// in Amazon's event stream encoding, and GET /health, /v1/models and /metrics with vLLM's
// names. As vLLM does, it sends the response headers of a stream at once, long before the first token.
//
// What really happened is at GET /stats (totals) and /stats/requests (the last
// 10,000 requests), reset by POST /stats/reset. A replica misbehaves on purpose for
// one request by request headers ([Control]), for all by POST /control/fault
// ([Fault]).
//
// Time: a request spends the front-end time and then runs in the engine of package
// engine, in real time: queue, chunked prefill, decode steps shared by all that
// run. Timers are late by some tens of microseconds, so that with a high time
// scale the steps are a little longer than computed.
package replica
