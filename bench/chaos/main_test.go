package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/testenv"
)

func TestWithEnvoy(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "warmpath")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/warmpath").CombinedOutput(); err != nil {
		t.Fatalf("build warmpath: %v\n%s", err, out)
	}
	b := binaries{envoy: testenv.Envoy(t), warmpath: binary}
	t.Run("faults", func(t *testing.T) { testFaults(t, b) })
	t.Run("soak", func(t *testing.T) { testSoak(t, b) })
}

// reportOf runs the command and reads its report; anything wrong fails the test.
func reportOf(t *testing.T, b binaries, args ...string) (report, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	o, err := parse(append(args, "-json", file), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.binaries = b
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), stdout.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r, stdout.String()
}

// The short form of the suite: nothing is lost, altered, misrouted or left behind.
func testFaults(t *testing.T, b binaries) {
	t.Helper()
	r, text := reportOf(t, b, "-short", "-rate", "60")
	requests, byEnvoy, excused := 0, 0, 0
	for _, row := range r.Rows {
		requests += row.Requests
		byEnvoy += row.ByEnvoy
		excused += row.excused()
	}
	// The faults must have happened: a dead router leaves the choice to Envoy, and a
	// dead Envoy or replica ends some responses.
	if len(r.Rows) != 4 || requests < 500 || byEnvoy == 0 || excused == 0 {
		t.Errorf("%d scenarios, %d requests, %d by Envoy's choice, %d ended by the fault", len(r.Rows), requests, byEnvoy, excused)
	}
	if !strings.Contains(text, "| router killed | 1 |") || !strings.Contains(text, "| all | 4 |") {
		t.Errorf("no table:\n%s", text)
	}
}

// A soak of one round. Whether anything grows shows only in a longer one.
func testSoak(t *testing.T, b binaries) {
	t.Helper()
	r, text := reportOf(t, b, "-soak", "1s", "-only", "replica slow", "-rate", "60", "-requests", "100")
	if len(r.Rows) == 0 || len(r.Samples) == 0 || len(r.Trends) != 4 || !strings.Contains(text, "| goroutines |") {
		t.Errorf("%d scenarios, %d samples, %d trends:\n%s", len(r.Rows), len(r.Samples), len(r.Trends), text)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-requests", "-1"}, {"-duration", "-1s"}, {"-soak", "-1s"}, {"-rate", "0"}, {"-rate", "NaN"}, {"-bad"}, {"word"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-short", "-envoy", "/x/envoy", "-json", "/x/y", "-seed", "3", "-only", "router k", "-soak", "2m"}, io.Discard)
	if err != nil || o.command != `chaos -only "router k" -seed "3" -short -soak "2m0s"` || o.soak != 2*time.Minute {
		t.Errorf("%+v, error %v", o, err)
	}
	o.only, o.binaries.envoy = "nothing", "true"
	if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("no scenario: error %v", err)
	}
}

// There are as many scenarios as promised, and each is told apart from the others.
func TestScenarios(t *testing.T) {
	names := make(map[string]bool)
	for _, sc := range scenarios() {
		if names[sc.name] || sc.act == nil {
			t.Errorf("scenario %q is there twice, or does nothing", sc.name)
		}
		names[sc.name] = true
		clients := 0
		for _, g := range append(mixed(1), sc.clients...) {
			clients += g.Clients
		}
		if clients > bound*fewestReplicas {
			t.Errorf("%s: %d clients can fill more than %d replicas of %d slots", sc.name, clients, fewestReplicas, bound)
		}
	}
	if len(names) < 20 {
		t.Errorf("%d scenarios", len(names))
	}
}
