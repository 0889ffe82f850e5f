package doctor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/doctor"
)

const (
	manual     = "../../docs/DOCTOR.md"
	tableBegin = "<!-- rules: go test ./internal/doctor -rewrite -->\n"
	tableEnd   = "<!-- end -->\n"
)

// table is the table of the rules as the manual has it.
func table() string {
	var b strings.Builder
	b.WriteString("| id | severity | found is | because | mend it |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|")
	for _, r := range doctor.Rules() {
		source, heading, ok := strings.Cut(r.Source, ", ")
		if ok {
			source = fmt.Sprintf("[%s](%s#%s)", strings.TrimSuffix(source, ".md"), strings.TrimPrefix(source, "DOCTOR.md"), anchor(heading))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s (%s) | %s |\n", r.ID, r.Severity, cell.Replace(r.What), cell.Replace(r.Why), source, cell.Replace(r.Fix))
	}
	return b.String()
}

// anchor is how a heading is linked to.
func anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		default:
			return -1
		}
	}, strings.ToLower(heading))
	return kept
}

// The manual has the rules as they are.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, found := strings.Cut(rest, tableEnd)
	if !ok || !found {
		t.Fatalf("%s has no place for the table", manual)
	}
	want := before + tableBegin + table() + tableEnd + after
	if *rewrite {
		if err := os.WriteFile(manual, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s: the table has another content: go test ./internal/doctor -rewrite", manual)
	}
}

// What a rule says is shown where it says so: the heading is there.
func TestSources(t *testing.T) {
	ids := make(map[string]bool)
	measured, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range doctor.Rules() {
		if ids[r.ID] {
			t.Errorf("two rules are named %s", r.ID)
		}
		ids[r.ID] = true
		file, heading, ok := strings.Cut(r.Source, ", ")
		if !ok {
			continue // a command
		}
		page, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Errorf("%s: %v", r.ID, err)
			continue
		}
		if !strings.Contains(string(page), "# "+heading+"\n") {
			t.Errorf("%s: %s has no heading %q", r.ID, file, heading)
		}
		if file == "DOCTOR.md" && !strings.Contains(string(measured), "\n| `"+r.ID+"` | ") {
			t.Errorf("%s: the table of what was measured does not have it", r.ID)
		}
	}
}

// What warmpath sends is what is looked for.
func TestNamesAreThoseOfExtProc(t *testing.T) {
	fix := doctor.Named("other-source").Fix
	if !strings.Contains(fix, extproc.DestinationNamespace) || !strings.Contains(fix, extproc.DestinationKey) {
		t.Errorf("%q does not have %s and %s", fix, extproc.DestinationNamespace, extproc.DestinationKey)
	}
}
