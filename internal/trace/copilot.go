package trace

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// copilotLine is an event of Copilot's telemetry. Prompt and suggestion are JSON
// strings within the string, or empty where the telemetry has none.
type copilotLine struct {
	User       *int           `json:"UserId"`
	Time       string         `json:"TimeGenerated"`
	Prompt     jsontext.Value `json:"CurrentPrompt"`
	Suggestion jsontext.Value `json:"CurrentSuggestion"`
}

func readCopilot(in *input, _ Options, b builder) error {
	b.granularity(1)
	empty := 0
	err := in.lines(func(_ place, line []byte) error {
		var l copilotLine
		if err := decode(line, &l); err != nil {
			return err
		}
		r, err := l.record()
		if err != nil {
			return err
		}
		if !r.prompt.given() {
			empty++
			return nil
		}
		return b.add(r)
	})
	if err == nil && empty > 0 {
		b.note("%d events without the text of a prompt are left out", empty)
	}
	return err
}

func (l copilotLine) record() (r record, err error) {
	if l.User == nil {
		return r, missing("UserId")
	}
	r.session = strconv.Itoa(*l.User)
	if r.at, err = parseDate("TimeGenerated", l.Time, rfc3339); err != nil {
		return r, err
	}
	if r.prompt.json, err = innerString("CurrentPrompt", l.Prompt); err != nil {
		return r, err
	}
	suggestion, err := innerString("CurrentSuggestion", l.Suggestion)
	if err != nil || len(suggestion) == 0 {
		return r, err
	}
	text, err := jsontext.AppendUnquote(nil, suggestion)
	r.output = tokensOf(utf8.RuneCount(text))
	return r, err
}

// innerString returns the JSON string that a string holds, or nil if that is
// empty.
func innerString(member string, v jsontext.Value) (jsontext.Value, error) {
	if v.Kind() != '"' {
		return nil, fmt.Errorf("%s: got %s of %d bytes, want a string", member, kindName(v.Kind()), len(v))
	}
	inner, err := jsontext.AppendUnquote(nil, v)
	if err == nil && len(inner) == 0 {
		return nil, nil
	}
	if value := jsontext.Value(inner); err == nil && value.Kind() == '"' && value.IsValid() {
		return value, nil
	}
	return nil, fmt.Errorf("%s: its %d bytes are not a JSON string", member, len(inner))
}
