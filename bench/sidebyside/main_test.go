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

// build builds the programs that are measured.
func build(t *testing.T) binaries {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "../../cmd/warmpath", "../noop").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binaries{envoy: testenv.Envoy(t), warmpath: filepath.Join(dir, "warmpath"), noop: filepath.Join(dir, "noop")}
}

func TestWithEnvoy(t *testing.T) {
	b := build(t)
	t.Run("report", func(t *testing.T) { testReport(t, b) })
	t.Run("router passed over", func(t *testing.T) { testPassedOver(t, b) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, b) })
}

// A short run with all arms: every request is answered and went through the router
// of its arm, and the report has a place for everything.
func testReport(t *testing.T, b binaries) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	o, err := parse([]string{"-rounds", "1", "-requests", "8", "-saturation", "40ms", "-sizes", "1024,16384", "-json", file}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.binaries = b
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "round 1 ended after") || !strings.Contains(stderr.String(), " 0 requests failed") {
		t.Errorf("progress: %q", stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Rounds != 1 || len(r.Cases) != 4 || r.Machine.Cores == 0 || r.Machine.Envoy == "unknown" || strings.Contains(r.Machine.Command, o.binaries.envoy) {
		t.Errorf("%d rounds, %d cases, machine %+v", r.Rounds, len(r.Cases), r.Machine)
	}
	for _, c := range r.Cases {
		if len(c.Arms) != len(o.arms) || len(c.Arms) != len(arms)-3 {
			t.Fatalf("%v: %d arms, want %d and not the peers", c.testCase, len(c.Arms), len(arms)-3)
		}
		for i, a := range c.Arms {
			if a.Name != o.arms[i].name || a.Sent < 8 || len(a.Failed) > 0 {
				t.Errorf("%v: arm %s sent %d, failed %v", c.testCase, a.Name, a.Sent, a.Failed)
			}
			if a.P50.Median <= 0 || a.P50.Median > a.P90.Median || a.Envoy.Median <= 0 || a.Throughput.Median <= 0 || (a.Router.Median > 0) != (o.arms[i].router != nothing) {
				t.Errorf("%v: figures of %+v", c.testCase, a)
			}
		}
	}
	// Five ratios for each case of eight arms, what telling costs one, and the growth of
	// one in two cases.
	if len(r.Criteria) != 4*(8*5+1)+2 {
		t.Errorf("%d criteria: %+v", len(r.Criteria), r.Criteria)
	}
	for _, want := range []string{"## 16 KiB, model after messages", "| noop-headers |", "| warmpath-least | 1 KiB, model before messages |"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, stdout.String())
		}
	}
}

// A router that does not answer is noticed: its arm would look faster than it is.
func testPassedOver(t *testing.T, b binaries) {
	t.Helper()
	s, err := start(t.Context(), b, t.TempDir(), testArms(t, "noop"), connections)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	cases, err := plan{sizes: []int{1024}}.cases()
	if err != nil {
		t.Fatal(err)
	}
	s.arms[1].router.Kill()
	s.arms[1].router = s.envoy // a process that lives, so that its time can be read
	round, err := s.round(t.Context(), plan{requests: 8, saturation: 1}, cases[:1], newOrder(1))
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(rounds{round}, cases[:1], testArms(t, "noop"))
	if err := s.checkRouters(t.Context(), &r); err == nil || !strings.Contains(err.Error(), "arm noop: Envoy passed over its router") {
		t.Errorf("error %v of a router that is not there", err)
	}
}

// Interrupted before a round is complete, there is no report, and nothing runs on.
func testInterrupted(t *testing.T, b binaries) {
	t.Helper()
	o, err := parse([]string{"-sizes", "1024", "-arms", "noop"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.binaries = b
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, o, io.Discard, io.Discard); err == nil {
		t.Error("a report of nothing")
	}
}

func TestParseRejects(t *testing.T) {
	for _, args := range [][]string{
		{"-arms", "noop,nobody"}, {"-sizes", "4k"}, {"-rounds", "-1"}, {"-duration", "0s"}, {"-requests", "0"}, {"-saturation", "0s"}, {"-bad"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-arms", "noop", "-envoy", "/x/envoy", "-seed", "3"}, io.Discard)
	if err != nil || len(o.arms) != 2 || o.arms[0].name != baseline || o.command != "sidebyside -arms noop -seed 3" {
		t.Errorf("%+v, error %v", o, err)
	}
}
