// Package usage reads what an engine tells of a request in its own answer: how many
// tokens the prompt had, how many of them were in the cache, and when the first piece of
// the answer came. It reads the answers of OpenAI's chat, completions and responses APIs
// and of Anthropic's messages API, and the timings that llama.cpp adds to its own, whole
// or as a stream of events, in pieces of any size, and keeps numbers only.
package usage
