package trace

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// textLine is a line of the generic format with prompts, which is that of
// LMCache's agent traces with a little more.
type textLine struct {
	Timestamp jsontext.Value `json:"timestamp"`
	Input     jsontext.Value `json:"input"`
	Output    string         `json:"output"`
	Tokens    *int           `json:"output_length"`
	names
}

func readText(in *input, o Options, b builder) error {
	return readTextLines(in, b, func(v jsontext.Value) (time.Duration, error) { return textTime(v, o.TimeUnit) })
}

// readMiniSWE reads LMCache's traces of mini-SWE-agent, whose times are
// microseconds.
func readMiniSWE(in *input, _ Options, b builder) error {
	return readTextLines(in, b, func(v jsontext.Value) (time.Duration, error) {
		return timeOf("timestamp", v, time.Microsecond)
	})
}

func readTextLines(in *input, b builder, when func(jsontext.Value) (time.Duration, error)) error {
	b.granularity(1)
	return in.lines(func(_ place, line []byte) error {
		var l textLine
		if err := decode(line, &l); err != nil {
			return err
		}
		r, err := l.record()
		if err != nil {
			return err
		}
		if r.at, err = when(l.Timestamp); err != nil {
			return err
		}
		return b.add(r)
	})
}

func (l textLine) record() (r record, err error) {
	switch l.Input.Kind() {
	case 0:
		return r, missing("input")
	case '"', '[':
	default:
		return r, fmt.Errorf("input: got %s of %d bytes, want a string or a list of messages", kindName(l.Input.Kind()), len(l.Input))
	}
	r = record{session: l.Session, model: l.Model, tenant: l.Tenant, prompt: prompt{json: l.Input}}
	r.output = tokensOf(utf8.RuneCountInString(l.Output))
	if l.Tokens != nil {
		r.output = *l.Tokens
	}
	return r, nil
}

// textTime reads a timestamp of the generic format: a number of a unit, 0 to
// guess it, or a date.
func textTime(v jsontext.Value, unit time.Duration) (time.Duration, error) {
	text, err := scalar("timestamp", v)
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && v.Kind() == '"':
		return parseDate("timestamp", text, rfc3339)
	case unit == 0:
		unit = unitOf(number)
	}
	return parseTime("timestamp", text, unit)
}
