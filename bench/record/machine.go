package record

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Machine is where and with what a report was made.
type Machine struct {
	Date    string `json:"date"`
	Command string `json:"command"`
	Seed    uint64 `json:"seed"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Envoy   string `json:"envoy,omitempty"` // where one is measured
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	// Load is the load average of 1, 5 and 15 minutes at the start: what others do.
	Load string `json:"load_average"`
}

// NewMachine looks around: envoy is the binary that is measured, "" if there is
// none, command what made the report. It fails if envoy cannot tell its version.
func NewMachine(ctx context.Context, envoy, command string, seed uint64) (Machine, error) {
	m := Machine{
		Date: time.Now().UTC().Format(time.DateTime + " UTC"), Command: command, Seed: seed, Commit: commit(ctx),
		Go: runtime.Version(), CPU: cpuModel(contents("/proc/cpuinfo")), Cores: runtime.NumCPU(), Load: loadAverage(contents("/proc/loadavg")),
	}
	if envoy == "" {
		return m, nil
	}
	version, err := exec.CommandContext(ctx, envoy, "--version").Output()
	if err != nil {
		return Machine{}, fmt.Errorf("version of Envoy: %w", err)
	}
	m.Envoy = envoyVersion(string(version))
	return m, nil
}

// Lines is the head of a report, for people.
func (m Machine) Lines() []string {
	versions := "warmpath " + m.Commit
	if m.Envoy != "" {
		versions += ", Envoy " + m.Envoy
	}
	return []string{
		fmt.Sprintf("`%s`, seed %d, %s", m.Command, m.Seed, m.Date),
		versions + ", " + m.Go,
		fmt.Sprintf("%s, %d cores, load average %s at the start", m.CPU, m.Cores, m.Load),
	}
}

// contents is the text of a file, empty where there is none.
func contents(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

var modelName = regexp.MustCompile(`(?m)^model name\s*: (.+)$`)

func cpuModel(cpuinfo string) string {
	if m := modelName.FindStringSubmatch(cpuinfo); m != nil {
		return m[1]
	}
	return runtime.GOARCH
}

// loadAverage is the first three fields of /proc/loadavg.
func loadAverage(text string) string {
	if fields := strings.Fields(text); len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

var versionOf = regexp.MustCompile(`version: [0-9a-f]+/([^/]+)/`)

// envoyVersion finds it in "PATH  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL".
func envoyVersion(text string) string {
	if m := versionOf.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return "unknown"
}

// commit is that of the working directory, whether it was changed since or not.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "of an unknown commit"
	}
	return strings.TrimSpace(string(out))
}
