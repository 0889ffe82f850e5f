package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/testenv"
)

// small is the demonstration with few requests.
func small(t *testing.T) options {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "warmpath")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/warmpath").CombinedOutput(); err != nil {
		t.Fatalf("build warmpath: %v\n%s", err, out)
	}
	return options{
		warmpath: binary, envoy: testenv.Envoy(t), rate: 80, burst: 48,
		workload: load.Shared{Prefixes: 20, Uses: 5, CommonChars: 5_000, PrefixChars: 16_000, SuffixChars: 800, Seed: 1}, outputTokens: 4,
	}
}

// The demonstration shows what it promises: a gain, no failure, each kind of
// decision in words.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := demo(t.Context(), small(t), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, want := range []string{
		"80 requests ran meanwhile, 0 failed.", "KV cache hit rate", "as warmpath reads it", "as warmpath expects it", "TTFT P90", "share of 127.0.0.7",
		"chosen at random", "its first home", "so its home number", ": a home, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	var random, fixed, auto, points float64
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "KV cache hit rate"); ok {
			if _, err := fmt.Sscanf(rest, "%f %% %f %% %f %% %f points", &random, &fixed, &auto, &points); err != nil {
				t.Fatalf("hit rates in %q: %v", line, err)
			}
		}
	}
	// What warmpath reads in passing is what the clients saw.
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "  as warmpath reads it"); ok {
			var r, f, a float64
			if _, err := fmt.Sscanf(rest, "%f %% %f %% %f %%", &r, &f, &a); err != nil || r != random || f != fixed || a != auto {
				t.Errorf("read %.1f %%, %.1f %% and %.1f %% (%v)", r, f, a, err)
			}
		}
	}
	// Of five uses four can hit; the ceiling is 81 %.
	if auto < 68 || random > 55 || auto <= fixed {
		t.Errorf("hit rate %.1f %% by prefix, %.1f %% by a fixed length, %.1f %% at random", auto, fixed, random)
	}
	if t.Failed() {
		t.Log(text)
	}
}

// Interrupted in the middle, it leaves no process behind.
func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &cancelAfter{cancel: cancel, text: "RANDOM: "}
	err := demo(ctx, small(t), w)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("demo returned %v", err)
	}
	if children := children(t); len(children) > 0 {
		t.Errorf("left running: %v", children)
	}
}

// cancelAfter cancels shortly after a text was written.
type cancelAfter struct {
	cancel context.CancelFunc
	text   string
	once   sync.Once
}

var _ io.Writer = (*cancelAfter)(nil)

func (c *cancelAfter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.text)) {
		c.once.Do(func() { time.AfterFunc(300*time.Millisecond, c.cancel) })
	}
	return len(p), nil
}

// children lists the command lines of this process's children.
func children(t *testing.T) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// "pid (command) state ppid ..."
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) && fields[0] != "Z" {
			found = append(found, string(stat))
		}
	}
	return found
}
