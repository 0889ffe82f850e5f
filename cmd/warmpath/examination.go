package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/warmpath/warmpath/internal/doctor"
)

// examination is what was found.
type examination struct {
	Findings []doctor.Finding `json:"findings"`
	// Probes is what became of the probes, nil without any.
	Probes *probeCounts `json:"probes,omitempty"`
	// Examined are the names of what was looked at.
	Examined []string `json:"examined"`
}

// print writes the findings, each with its place, its reason and its cure.
func (e examination) print(stdout io.Writer, asJSON bool) error {
	var b bytes.Buffer
	if asJSON {
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(e); err != nil {
			return err
		}
	} else {
		for _, f := range e.Findings {
			fmt.Fprintf(&b, "%s: %s: %s [%s]\n    why: %s\n    fix: %s\n", onTerminal(f.Where()), f.Severity, onTerminal(f.Found), f.ID, f.Why, f.Fix)
		}
		if e.Probes != nil {
			fmt.Fprintln(&b, e.Probes)
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.Join(e.Examined, ", "), e.summary())
	}
	_, err := b.WriteTo(stdout)
	return err
}

func (e examination) count(s doctor.Severity) (n int) {
	for _, f := range e.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

func (e examination) summary() string {
	var parts []string
	for _, s := range []doctor.Severity{doctor.Error, doctor.Warning, doctor.Note} {
		switch n := e.count(s); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+string(s))
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing is wrong")
}

// verdict is an error if what was found makes the command fail.
func (e examination) verdict(failOn string) error {
	if e.count(doctor.Error) > 0 || failOn == "warning" && e.count(doctor.Warning) > 0 {
		return fmt.Errorf("doctor: %s", e.summary())
	}
	return nil
}
