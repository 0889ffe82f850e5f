package trace

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readRealHumanEval reads the chats of RealHumanEval: CSV in which the messages
// are a literal of Python, and times are seconds of the programmer's session.
func readRealHumanEval(in *input, _ Options, b builder) error {
	b.granularity(1)
	columns := []string{"request", "response", "programmer_id", "timestamp", "model"}
	return in.rows(columns, func(_ place, row []string) error {
		messages, err := pythonMessages(row[0])
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		body, err := json.Marshal(messages, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return fmt.Errorf("request: %d messages cannot be written as JSON", len(messages))
		}
		r := record{
			output:  tokensOf(utf8.RuneCountInString(row[1])),
			session: row[2], model: row[4],
			prompt: prompt{json: body},
		}
		if r.at, err = parseTime(columns[3], row[3], time.Second); err != nil {
			return err
		}
		return b.add(r)
	})
}
