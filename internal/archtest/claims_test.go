package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// proof is the name of a test on a page, proven its definition in a source.
	proof  = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	proven = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
)

// Every claim of the pages names a test, and the test exists.
func TestClaimsAreTested(t *testing.T) {
	tests := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range proven.FindAllSubmatch(source, -1) {
			tests[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs/SECURITY.md", "docs/CASES.md", "docs/OPERATIONS.md"} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) < 100 || len(proof.FindAll(page, -1)) < 20 {
			t.Errorf("%d tests, %d named in %s: has their form changed?", len(tests), len(proof.FindAll(page, -1)), name)
		}
		for _, problem := range claimProblems(string(page), tests) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// claimProblems returns what a page claims without a test: a name that no test
// has, or a row of a table of attempts, cases or procedures that names none.
func claimProblems(page string, tests map[string]bool) (problems []string) {
	for _, match := range proof.FindAllStringSubmatch(page, -1) {
		if !tests[match[1]] {
			problems = append(problems, "there is no test "+match[1])
		}
	}
	inTable := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "| attempt |"), strings.HasPrefix(line, "| case |"), strings.HasPrefix(line, "| procedure |"):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|-") && !proof.MatchString(line):
			problems = append(problems, fmt.Sprintf("%q names no test", strings.TrimSpace(line)))
		}
	}
	return problems
}

// Each fault is found, and what is right is not taken for one.
func TestClaimsFindsFaults(t *testing.T) {
	tests := map[string]bool{"TestThere": true}
	for page, want := range map[string]string{
		"as `TestThere` shows":                             "",
		"as `TestGone` shows":                              "no test TestGone",
		"as `FuzzGone` shows":                              "no test FuzzGone",
		"| attempt | x |\n|---|---|\n| a | `TestThere` |":  "",
		"| attempt | x |\n|---|---|\n| a | it is so |\n":   "names no test",
		"| case | x |\n|---|---|\n| 1. a | it is so |\n":   "names no test",
		"| procedure | x |\n|---|---|\n| a | so |\n":       "names no test",
		"| other | x |\n|---|---|\n| a | it is so |\n\nso": "",
	} {
		if got := strings.Join(claimProblems(page, tests), "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", page, got, want)
		}
	}
}

var (
	// played are the scenarios in a row of procedures, its last cell; scenario is
	// the definition of one.
	played   = regexp.MustCompile("(?m)^\\|.*\\|.*`Test.*\\| (.+) \\|$")
	scenario = regexp.MustCompile(`\{name: "([^"]+)"`)
)

// The scenarios that docs/OPERATIONS.md names are those of bench/chaos.
func TestOperationsNameScenarios(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join(root, "bench/chaos/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range scenario.FindAllSubmatch(source, -1) {
			known[string(match[1])] = true
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, match := range played.FindAllSubmatch(page, -1) {
		for name := range strings.SplitSeq(string(match[1]), ", ") {
			named++
			if !known[name] {
				t.Errorf("docs/OPERATIONS.md: make chaos has no scenario %q", name)
			}
		}
	}
	if named < 8 {
		t.Errorf("docs/OPERATIONS.md names %d scenarios: has the table's form changed?", named)
	}
}
