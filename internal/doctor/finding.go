package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// Error: requests fail, are altered, are not steered at all, or a client steers.
	Error Severity = "error"
	// Warning: it works now, and fails under load, in a fault or for some requests.
	Warning Severity = "warning"
	// Note: something is not seen or not as good as it could be.
	Note Severity = "note"
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is one fault at one place.
type Finding struct {
	// ID names the rule; docs/DOCTOR.md lists them.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// File is where the configuration was read from; Line and Column, from 1, are there
	// for files only. Path is where in it, as in static_resources.clusters[0].
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	// Found says what is there, Why what it does and where that is shown, Fix what to
	// change.
	Found string `json:"found"`
	Why   string `json:"why"`
	Fix   string `json:"fix"`
}

// Where is the finding's place in a line.
func (f Finding) Where() string {
	switch {
	case f.Line > 0:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	case f.Path != "":
		return f.File + ": " + f.Path
	default:
		return f.File
	}
}

// sorted puts the findings into the order of the configuration, and takes out those
// that are there twice.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity.rank(), b.Severity.rank()),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(findings, func(a, b Finding) bool { return a.ID == b.ID && a.Path == b.Path })
}
