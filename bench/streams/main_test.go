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

// build builds a program as it is shipped: under the race detector memory is
// another thing.
func build(t *testing.T, name, path string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, path).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return binary
}

// The short form: every stream is counted, none is lost, and what they take is below
// the bounds.
func TestShort(t *testing.T) {
	envoy, warmpath, streams := testenv.Envoy(t), build(t, "warmpath", "../../cmd/warmpath"), build(t, "streams", ".")
	file := filepath.Join(t.TempDir(), "report.json")
	out, err := exec.CommandContext(t.Context(), streams, "-short", "-envoy", envoy, "-warmpath", warmpath, "-json", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Open) != 2 || len(r.Storms) != len(storms()) || r.Overload == nil || len(r.Idle) != 2 || len(r.Tables) != 2 {
		t.Errorf("parts are missing:\n%s", out)
	}
	if !bytes.Contains(out, []byte("| bodies | traced |")) || !bytes.Contains(out, []byte("| `limits.requests` |")) {
		t.Errorf("no tables:\n%s", out)
	}
}

// Each bound is one that can be missed.
func TestWrong(t *testing.T) {
	const n = 5000
	good := openRow{Streams: n, Counted: n, Open: vitals{Resident: n * maxPerStream, Live: n * maxPerStream}}
	if err := good.wrong(); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	for name, spoil := range map[string]func(*openRow){
		"resident memory":   func(r *openRow) { r.Open.Resident += n },
		"alive":             func(r *openRow) { r.Open.Stacks += n },
		"KiB of stack":      func(r *openRow) { r.Open.Stacks = 13 << 10 * n },
		"sent on by Envoy":  func(r *openRow) { r.Counted, r.ByEnvoy = n-n/50, n/50 },
		"are counted":       func(r *openRow) { r.Counted-- },
		"1 requests":        func(r *openRow) { r.After.Running = 1 },
		"31 goroutines":     func(r *openRow) { r.After.Goroutines = 31 },
		"left behind":       func(r *openRow) { r.After.Live = 5 << 20 },
		"of resident memor": func(r *openRow) { r.Counted, r.Streams = n/2, n/2 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.wrong(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	table := tableRow{Keys: 10, Decided: 10, Forgotten: 1, Filled: 1, Most: 1 + moreTables}
	if err := table.wrong(); err != nil {
		t.Errorf("tables at the bounds: %v", err)
	}
	for _, spoil := range []func(*tableRow){
		func(r *tableRow) { r.Most++ },
		func(r *tableRow) { r.Filled, r.Most = maxTables, maxTables+1 },
		func(r *tableRow) { r.Series[1]++ },
		func(r *tableRow) { r.Decided-- },
		func(r *tableRow) { r.Forgotten = 0 },
	} {
		bad := table
		spoil(&bad)
		if bad.wrong() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	for _, over := range []overloadRow{{5, 1, 1, 4, 4, 2}, {5, 1, 2, 4, 4, 1}, {5, 1, 1, 3, 4, 1}, {5, 1, 1, 4, 3, 1}} {
		if over.wrong() == nil {
			t.Errorf("%+v is accepted", over)
		}
	}
	if err := (&overloadRow{5, 1, 1, 4, 4, 1}).wrong(); err != nil {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-streams", "9"}, {"-streams", "20001"}, {"-keys", "999"}, {"-idle", "1ms"}, {"-bad"}, {"word"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-short", "-envoy", "/x/envoy", "-seed", "3", "-only", "storm", "-idle", "5s"}, io.Discard)
	if err != nil || o.command != `streams -idle "5s" -only "storm" -seed "3" -short` || o.idle != 5*time.Second || o.streams != 600 {
		t.Errorf("%+v, error %v", o, err)
	}
	o.only, o.envoy = "nothing", "true"
	if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("no part: error %v", err)
	}
}
