// Package record is what the reports of the benchmarks have in common: where they
// were made, and a figure of several rounds with its range.
package record
