// Package load makes LLM requests with shared prefixes, sends them through a
// gateway and measures what a user of it would feel: the time to the first
// content token (never to the response headers, which engines send at once),
// the time to the end, cache hits and which replica served.
//
// An open loop sends at its own times, whether or not the earlier requests have
// ended, and measures from the moment that a request was to be sent; so a gateway
// that stalls cannot slow down the very requests that would show it (no
// coordinated omission). A closed loop finds out what a gateway can do at most.
package load
