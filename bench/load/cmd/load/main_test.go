package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/bench/replica"
)

// Every workload is sent, by every kind of load, and the report says so.
func TestRun(t *testing.T) {
	f, err := replica.Listen([]string{"127.0.0.1:0"}, replica.Params{TimeScale: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	times := filepath.Join(t.TempDir(), "times")
	if err := os.WriteFile(times, []byte("0\n0.001\n0.001\n0.02\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	process := fmt.Sprintf("self=%d", os.Getpid())
	for _, c := range []struct {
		args     string
		requests int
		stream   bool
	}{
		{"-prefixes 3 -uses 2 -concurrency 2", 6, true},
		{"-conversations 2 -turns 3 -rate 1000 -api completions", 6, true},
		{"-bytes 2048 -count 7 -concurrency 3 -api invoke -stream=false", 7, false},
		{"-times " + times + " -api chat -model-last", 4, true},
	} {
		args := append(strings.Fields(c.args), "-url", "http://"+f.Addresses()[0], "-json", "-process", process, "-output-tokens", "3")
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), o, &out, io.Discard); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		var r report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		s := r.Summary
		if s.Requests != c.requests || s.Failed != 0 || (s.TTFT.P50 > 0) != c.stream || s.Latency.P999 <= 0 || r.CPU["self"] <= 0 {
			t.Errorf("%s: %+v", c.args, r)
		}
		out.Reset()
		if err := r.write(&out, false); err != nil || !strings.Contains(out.String(), "| whole answer |") || !strings.Contains(out.String(), "| self | ") {
			t.Errorf("%s: error %v\n%s", c.args, err, out.String())
		}
	}
}

func TestRejects(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "times")
	if err := os.WriteFile(bad, []byte("2\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"-process 4711", "-times /does/not/exist", "-times " + bad, "-rate fast",
		"-concurrency 1 -api soap", "-concurrency 1 -uses 0", "-concurrency 1 -rate 1", "", "-concurrency 1 -process gone=999999999",
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		if err == nil {
			err = run(t.Context(), o, io.Discard, io.Discard)
		}
		if err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
