package main

import (
	"os"
	"strings"
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

// Names that readers of YAML take for something else, and what cannot be, are refused.
func TestEnvoyCommandRefuses(t *testing.T) {
	const shipped = "../../examples/istio/warmpath.yaml"
	for _, tt := range []struct {
		want string
		args []string
	}{
		{`namespace "no"`, []string{"-config", shipped, "--for", "istio", "--namespace", "no"}},
		{`"llama" is the Service of warmpath and of the model servers`, []string{"-config", shipped, "--for", "istio", "--service", "llama"}},
		{`"warmpath" is the Service of warmpath and of the model servers`, []string{"-config", shipped, "--for", "istio", "--models", "warmpath"}},
		{`"0": want 1..65535`, []string{"-config", shipped, "--for", "istio", "--models-port", "0"}},
		{`"65536": want 1..65535`, []string{"-config", shipped, "--for", "istio", "--gateway-port", "65536"}},
		{`listener address "127.0.0.1:9901", admin address "127.0.0.1:9901"`, []string{"-config", "../../examples/quickstart/warmpath.yaml", "--listener", "127.0.0.1:9901"}},
	} {
		out, errs, exit := warmpath(t.Context(), append([]string{"envoy"}, tt.args...)...)
		if exit != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit %d: %s%s, want %q", tt.args, exit, out, errs, tt.want)
		}
	}
}
