// Package archtest holds the rules of this repository that a compiler does not
// know, as tests: which package may import which, how the source is written, and
// that each metric is documented. Every rule gives its reason when it fails, and
// is itself tested with planted faults.
package archtest
