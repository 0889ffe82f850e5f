package trace

import (
	"fmt"
	"strconv"
)

// readAzure reads the traces of Azure's LLM inference, which have times and
// lengths only.
func readAzure(in *input, _ Options, b builder) error {
	b.note("the trace has no prompts and no hashes: no request shares anything")
	columns := []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
	return in.rows(columns, func(_ place, row []string) (err error) {
		var r record
		if r.at, err = parseDate(columns[0], row[0], azureDate); err != nil {
			return err
		}
		if r.input, err = tokenCount(columns[1], row[1]); err != nil {
			return err
		}
		if r.output, err = tokenCount(columns[2], row[2]); err != nil {
			return err
		}
		return b.add(r)
	})
}

func tokenCount(column, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxTokens {
		return 0, fmt.Errorf("%s %s: want an integer from 0 to %d", column, shown(text), MaxTokens)
	}
	return n, nil
}
