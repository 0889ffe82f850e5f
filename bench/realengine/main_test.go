package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/testenv"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-short", "-seed", "3", "-json", "x"}, new(bytes.Buffer))
	if err != nil || o.scale != brief() || o.seed != 3 || o.files.JSON != "x" || o.files.Markdown != "-" || o.command != "realengine -short" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse(nil, new(bytes.Buffer)); err != nil || o.scale != full() {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"x"}, {"-seed", "-1"}, {"-fast"}} {
		if _, err := parse(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// A program that is not there, or does not start, is an error before anything else
// runs.
func TestNoEngine(t *testing.T) {
	if _, err := engineVersion(t.Context(), "/no/llama-server"); err == nil {
		t.Error("a binary that is not there has a version")
	}
	if _, err := startEngines(t.Context(), "/no/llama-server", "x", addresses()); err == nil || !strings.Contains(err.Error(), "llama-server 127.71.0.1:18100") {
		t.Errorf("engines of no binary: %v", err)
	}
	script := filepath.Join(t.TempDir(), "llama-server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no such model: $2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := startEngines(t.Context(), script, "x.gguf", addresses()); err == nil || !strings.Contains(err.Error(), "no such model: x.gguf") {
		t.Errorf("engines that end: %v", err)
	}
}

// Envoy takes both configurations.
func TestBootstraps(t *testing.T) {
	plain, err := plainBootstrap("127.0.0.1:9901", "127.0.0.1:10000", addresses())
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := withReplicaHeader(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withReplicaHeader([]byte("x")); err == nil {
		t.Error("a bootstrap without routes gets the header")
	}
	binary := testenv.Envoy(t)
	for name, text := range map[string][]byte{"plain.json": plain, "shipped.yaml": changed} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--disable-hot-restart", "-l", "warn", "-c", path)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("Envoy refuses %s: %v\n%s", name, err, out)
		}
	}
}

// The example runs its engines as they are run here, and names the version that is built.
func TestExample(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme := read("../../examples/real-engine/README.md")
	joined := strings.Join(strings.Fields(strings.ReplaceAll(readme, "\\\n", " ")), " ")
	if !strings.Contains(joined, engineFlags) {
		t.Errorf("README.md does not run llama-server with %s", engineFlags)
	}
	for line := range strings.Lines(read("../../Tools.mk")) {
		if version, ok := strings.CutPrefix(line, "LLAMA_SERVER_VERSION := "); ok && !strings.Contains(readme, "llama-server-"+strings.TrimSpace(version)+" ") {
			t.Errorf("README.md does not run version %s", version)
		}
	}
}
