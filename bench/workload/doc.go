// Package workload makes LLM requests with shared prefixes, sends them through
// a gateway and measures what a user of it would feel: the time to the first
// content token (never to the response headers, which engines send at once),
// cache hits and which replica served.
package workload
