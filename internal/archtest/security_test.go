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
func TestSecurityClaimsAreTested(t *testing.T) {
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
	for _, name := range []string{"docs/SECURITY.md", "docs/CASES.md"} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) < 100 || len(proof.FindAll(page, -1)) < 30 {
			t.Errorf("%d tests, %d named in %s: has their form changed?", len(tests), len(proof.FindAll(page, -1)), name)
		}
		for _, problem := range claimProblems(string(page), tests) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// claimProblems returns what a page claims without a test: a name that no test
// has, or a row of a table of attempts or cases that names none.
func claimProblems(page string, tests map[string]bool) (problems []string) {
	for _, match := range proof.FindAllStringSubmatch(page, -1) {
		if !tests[match[1]] {
			problems = append(problems, "there is no test "+match[1])
		}
	}
	inTable := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "| attempt |"), strings.HasPrefix(line, "| case |"):
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
func TestSecurityClaimsFindsFaults(t *testing.T) {
	tests := map[string]bool{"TestThere": true}
	for page, want := range map[string]string{
		"as `TestThere` shows":                             "",
		"as `TestGone` shows":                              "no test TestGone",
		"as `FuzzGone` shows":                              "no test FuzzGone",
		"| attempt | x |\n|---|---|\n| a | `TestThere` |":  "",
		"| attempt | x |\n|---|---|\n| a | it is so |\n":   "names no test",
		"| case | x |\n|---|---|\n| 1. a | it is so |\n":   "names no test",
		"| other | x |\n|---|---|\n| a | it is so |\n\nso": "",
	} {
		if got := strings.Join(claimProblems(page, tests), "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", page, got, want)
		}
	}
}
