package strict

import (
	"fmt"
	"strings"
)

// Problem is one fault of a file, addressed so that an editor and a person find
// it, and worded so that it can be mended without the manual.
type Problem struct {
	File string
	// Line and Column count from 1; Line is 0 when the fault has no place of its
	// own, such as a missing section of an empty file.
	Line, Column int
	// Path names the value from the root, as in "membership.static[2].weight";
	// empty when the file as a whole is at fault.
	Path string
	// Value is what stands there, shortened; empty when nothing does.
	Value string
	// Message is the predicate to Value: what is wrong, and what is wanted.
	Message string
}

// String is one line: file:line: path: value message.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	if p.Value != "" {
		b.WriteString(p.Value + " ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// maxListed bounds the text of a Problems error, which ends up in log lines.
const maxListed = 20

// Problems is every fault of a file, in the order of its lines. Return it as an
// error through [Problems.Err], so that none means nil.
type Problems []Problem

// Error lists the problems, one a line, at most 20 of them.
func (ps Problems) Error() string {
	lines := make([]string, 0, min(len(ps), maxListed)+1)
	for i, p := range ps {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more", len(ps)-maxListed))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// Err is nil when there is no problem.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
