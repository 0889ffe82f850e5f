// Package doctor finds what is wrong or risky in an Envoy configuration that is to have
// its model servers chosen by warmpath, in a file or as Envoy's admin listener dumps it.
//
// A rule is a row of a table ([Rules]) with a small function: what it finds, why that
// matters, where that was measured, and what to do. It computes from values only: who
// calls it reads the file or asks Envoy.
package doctor
