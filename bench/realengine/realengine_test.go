//go:build realengine

package main

import (
	"os"
	"testing"
)

// TestRealEngine runs the small form with the llama-server that LLAMA_SERVER names.
func TestRealEngine(t *testing.T) {
	r := measureBriefly(t, os.Getenv("LLAMA_SERVER"), addresses())
	check(t, r)
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
}
