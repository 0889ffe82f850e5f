package prefix

import (
	"strings"
	"testing"
)

// Numbers, and so the ids of a tokenized prompt, begin with a minus or any digit.
func TestIsNumber(t *testing.T) {
	for c := range 256 {
		if got, want := isNumber(byte(c)), strings.IndexByte("-0123456789", byte(c)) >= 0; got != want {
			t.Errorf("%q begins a number: %v, want %v", byte(c), got, want)
		}
	}
}
