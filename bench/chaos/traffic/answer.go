package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/warmpath/warmpath/bench/load"
)

// whole fails unless a response of status 200 is all that was asked for.
func (f *Form) whole(text []byte) error {
	tokens, end := 0, true
	switch {
	case f.Stream && f.API == load.Invoke:
		tokens = bytes.Count(text, []byte(`data: {"token":{"text":" `))
		end = bytes.Contains(text, []byte(`data: {"generated_text":`)) && bytes.HasSuffix(text, []byte("}\n\n"))
	case f.Stream:
		tokens = bytes.Count(text, []byte(`"content":" `))
		end = bytes.HasSuffix(text, []byte("data: [DONE]\n\n"))
	default:
		var answer struct {
			Usage struct {
				CompletionTokens int `json:"completion_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("answer of %d bytes is no JSON", len(text))
		}
		tokens = answer.Usage.CompletionTokens
	}
	if tokens != f.Tokens || !end {
		return fmt.Errorf("answer of %d tokens, its end there %v; want %d and the end", tokens, end, f.Tokens)
	}
	return nil
}
