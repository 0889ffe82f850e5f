// Package record is what the commands that measure have in common: how they run
// and where they write, on which machine they ran, and a figure of several rounds
// with its range.
package record
