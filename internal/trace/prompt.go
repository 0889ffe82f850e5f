package trace

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/warmpath/warmpath/internal/prefix"
)

// prompt is a prompt given as text. It is private: it must not get into an error.
type prompt struct {
	// json is a string, or a list of messages as in chat completions.
	json jsontext.Value
}

func (p prompt) given() bool { return len(p.json) > 0 }

// textChunker cuts prompts as the router does: it makes the body of a request of
// each and has it read by the router's scanner.
type textChunker struct {
	scanner prefix.Scanner
	body    []byte
}

// chunks returns the levels of the prompt's chained key and its length in
// characters of canonical text.
func (c *textChunker) chunks(p prompt, model string) (levels []uint64, chars int, err error) {
	path, member := "/v1/completions", `,"prompt":`
	if p.json.Kind() == '[' {
		path, member = "/v1/chat/completions", `,"messages":`
	}
	// An error only says that the name is not UTF-8; it is mended then.
	c.body, _ = jsontext.AppendQuote(append(c.body[:0], `{"model":`...), model)
	c.body = append(append(append(c.body, member...), p.json...), '}')
	c.scanner.Reset(prefix.Head{Path: path}, prefix.Options{PrefixLength: MaxLineBytes})
	c.scanner.Feed(c.body)
	switch r := c.scanner.Finish(true); r.Kind {
	case prefix.Text:
		return append([]uint64(nil), r.Levels...), r.Chars, nil
	case prefix.None:
		return nil, 0, nil
	}
	return nil, 0, errors.New("the prompt cannot be read as that of a request")
}

// tokensOf returns the tokens of a text; a token that was begun counts.
func tokensOf(chars int) int { return (chars + CharsPerToken - 1) / CharsPerToken }
