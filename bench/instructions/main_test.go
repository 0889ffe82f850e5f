package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// limits are how many instructions a run of a path may take on amd64. They lie a
// sixth above what was counted, for another Go release; a change that needs more
// says so here. The shorter a path the oftener it runs, because what the runtime
// does beside it, some 100,000 instructions, is in the count.
var limits = map[string]struct{ most, times int }{
	"scan-4KiB":    {55_000, 1_000}, // 47,549 counted
	"scan-64KiB":   {71_000, 1_000}, // 60,869
	"pick-home-7":  {1_530, 30_000}, // 1,312; 1,093 before zones, adapters and other routers' loads
	"pick-home-64": {3_910, 15_000}, // 3,352; 3,016
}

var collected = regexp.MustCompile(`Collected : (\d+)`)

// The paths take as many instructions as they did: a count that does not depend on
// how busy the machine is. It needs valgrind, and is left out without.
func TestInstructions(t *testing.T) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		t.Log("valgrind is not installed: instructions are not counted")
		return
	}
	binary := filepath.Join(t.TempDir(), "instructions")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	count := func(path string, times int) int {
		c := exec.CommandContext(t.Context(), valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, path, strconv.Itoa(times))
		// Signals, by which the runtime preempts, upset callgrind.
		c.Env = append(c.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
		out, err := c.CombinedOutput()
		m := collected.FindSubmatch(out)
		if err != nil || m == nil {
			t.Fatalf("%s: %v\n%s", path, err, out)
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	for path, limit := range limits {
		// The difference of two runs, because both have the same beginning.
		const few = 200
		got := (count(path, few+limit.times) - count(path, few)) / limit.times
		t.Logf("%s: %d instructions", path, got)
		if got > limit.most || got < limit.most/2 {
			t.Errorf("%s: %d instructions, want at most %d and not less than half of that", path, got, limit.most)
		}
	}
}

func TestPathsAreLimited(t *testing.T) {
	for path := range paths {
		if _, ok := limits[path]; !ok && path != "nothing" {
			t.Errorf("%s has no limit", path)
		}
	}
}
