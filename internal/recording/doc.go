// Package recording writes down what requests come, as a trace that package trace
// reads: when, how long, and which prompts begin alike. It keeps lengths and salted
// hashes; no text, and no name that a client chose.
//
// A request is never held up or failed: what cannot be kept or written is dropped
// and counted. What is held in memory, the queue, the files and their number are
// bounded.
package recording
