package main

import (
	"os"
	"testing"
)

// For the example's configuration the example's objects are printed.
func TestIstioIsTheExamples(t *testing.T) {
	want, err := os.ReadFile("../../examples/istio/istio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, errs, code := warmpath(t.Context(), "envoy", "-config", "../../examples/istio/warmpath.yaml", "--for", "istio")
	if code != exitOK || got != string(want) {
		t.Errorf("exit %d: %s: it prints something else:\n%s", code, errs, got)
	}
}
