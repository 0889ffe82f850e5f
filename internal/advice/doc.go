// Package advice judges what simulations of a trace have given and what the
// prompts themselves look like: which setting to use, how many replicas the caches
// need, and what in the prompts defeats every cache. It never hands out text of a
// prompt, only positions and shares.
package advice
