package record

import (
	"encoding/json"
	"io"
	"os"
)

// Files are where a report goes. An empty JSON or Markdown is not written, and "-"
// for Markdown is standard output.
type Files struct{ JSON, Markdown string }

// Write writes a report as JSON, and its tables.
func (f Files) Write(report any, markdown string, stdout io.Writer) error {
	if f.JSON != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			err = os.WriteFile(f.JSON, append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	switch f.Markdown {
	case "":
		return nil
	case "-":
		_, err := io.WriteString(stdout, markdown)
		return err
	default:
		return os.WriteFile(f.Markdown, []byte(markdown), 0o644)
	}
}
