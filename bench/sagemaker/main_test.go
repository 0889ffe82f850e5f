package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/testenv"
)

func TestWithEnvoy(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "warmpath")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/warmpath").CombinedOutput(); err != nil {
		t.Fatalf("build warmpath: %v\n%s", err, out)
	}
	b := binaries{envoy: testenv.Envoy(t), warmpath: binary}
	t.Run("report", func(t *testing.T) { testReport(t, b) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, b) })
}

// The short form: every request is answered, and by prefix more is hit than at
// random. Its times depend on the machine and are not judged.
func testReport(t *testing.T, b binaries) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	o, err := parse([]string{"-short", "-json", file}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.binaries = b
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Rounds != 1 || r.Machine.Cores == 0 || r.Alone.P50 <= 0 || r.failed() > 0 || len(r.Configurations) != 7 {
		t.Errorf("%d rounds, machine %+v, alone %+v, %d failed, %d configurations", r.Rounds, r.Machine, r.Alone, r.failed(), len(r.Configurations))
	}
	if s := r.Shares; s.Prefixes != brief().prefixes || s.Replicas != instances || s.Least < 0.1 || s.Largest > 0.2 {
		t.Errorf("shares %+v", s)
	}
	for _, c := range r.Configurations {
		checkConfiguration(t, c)
	}
	for _, want := range []string{"## Short, closed loop of 8 in flight, chat completions, streamed", "| PREFIX_AWARE |", "| failed requests | all | all | 0.0"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, stdout.String())
		}
	}
}

func checkConfiguration(t *testing.T, c configurationReport) {
	t.Helper()
	name := c.String()
	requests := map[string]int{"long": 63, "short": 48}[c.Workload.Name]
	hits := make(map[string]float64)
	for _, s := range c.Strategies {
		hits[s.Name] = s.HitRate.Median
		if s.Requests != requests || s.P50.Median <= 0 || s.P50.Median > s.P90.Median || s.P90.Median > s.P99*1.01 || s.Throughput.Median <= 0 {
			t.Errorf("%s: %+v, want %d requests", name, s, requests)
		}
		if s.HitRate.Median > c.Ceiling.Median+1e-9 {
			t.Errorf("%s, %s: hit rate %v above the ceiling %v", name, s.Name, s.HitRate, c.Ceiling)
		}
	}
	if hits[aware] <= hits[random] || hits[autoAware] <= hits[random] || c.AtRandom.Median >= c.Ceiling.Median {
		t.Errorf("%s: hit rates %v, ceiling %v, expected at random %v", name, hits, c.Ceiling, c.AtRandom)
	}
}

// Interrupted, there is no report.
func testInterrupted(t *testing.T, b binaries) {
	t.Helper()
	o, err := parse([]string{"-short", "-only", "short, open"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.binaries = b
	ctx, cancel := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	// The first line of progress is that of the first configuration's end.
	if err := run(ctx, o, &stdout, writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })); err == nil || stdout.Len() > 0 {
		t.Errorf("error %v, report %q", err, stdout.String())
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "-1"}, {"-speed", "-1"}, {"-speed", "NaN"}, {"-long-rate", "-2"}, {"-bad"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-short", "-envoy", "/x/envoy", "-json", "/x/y", "-seed", "3", "-only", "long, open", "-rounds", "2"}, io.Discard)
	if err != nil || o.command != `sagemaker -only "long, open" -rounds 2 -seed 3 -short` || o.scale.rounds != 2 || o.scale.timeScale != brief().timeScale {
		t.Errorf("%+v, error %v", o, err)
	}
	o.only, o.binaries.envoy = "nothing", "true"
	if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("no configuration: error %v", err)
	}
}
