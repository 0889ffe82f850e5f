// Package gguf writes a small model with random weights in the format that llama.cpp
// reads: a Llama whose answers mean nothing and whose work is a real model's, so that
// an engine with a real prefix cache runs on two cores.
//
// One token is one byte of text. The answers are of lower-case letters and blanks,
// never end by themselves, and each token of them is a whole character.
//
// The format is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md,
// version 3.
package gguf
