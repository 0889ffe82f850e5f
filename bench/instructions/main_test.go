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
// says so here.
var limits = map[string]int{
	"scan-4KiB":    55_000, // 47,549 counted
	"scan-64KiB":   71_000, // 60,869
	"pick-home-7":  1_120,  // 961
	"pick-home-64": 3_350,  // 2,872
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
		c.Env = append(c.Environ(), "GOMAXPROCS=1", "GOGC=off")
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
		const few, many = 200, 1200
		got := (count(path, many) - count(path, few)) / (many - few)
		t.Logf("%s: %d instructions", path, got)
		if got > limit || got < limit/2 {
			t.Errorf("%s: %d instructions, want at most %d and not less than half of that", path, got, limit)
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
