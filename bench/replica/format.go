package replica

import (
	"fmt"
	"strings"
)

// format is the wire format of one API. Only parse sees the request; the
// others render an answer, plain or as the events of a stream in this order:
// opening (with the response headers), first (with the first token), token for
// each token, last.
type format interface {
	parse(body []byte) (request, error)
	plain(a answer) any
	opening(a answer) []event
	first(a answer) []event
	token(a answer, i int) []event
	last(a answer) []event
}

// object is a JSON object.
type object = map[string]any

// event is one server-sent event; without a name there is no "event:" line.
type event struct {
	name string
	data any // JSON, but for doneMark
}

// doneMark ends the streams of the chat and completions APIs.
const doneMark = rawData("[DONE]")

// rawData is event data that is sent as it is.
type rawData string

// answer is a generated text, as far as it is known when it is rendered.
type answer struct {
	id           string // without the prefix that each API gives it
	model        string
	created      int64 // unix seconds
	promptTokens int
	cachedTokens int
	tokens       int  // of the whole answer
	limited      bool // the request's limit ended it, not the model
	includeUsage bool
}

// words are the tokens of every answer, each exactly one token long, so that
// an answer sent back in the next turn has the length it was counted with.
var words = [...]string{" the", " sun", " has", " set", " and", " all", " our", " gpu", " are", " now", " hot"}

func word(i int) string { return words[i%len(words)] }

// text returns the first n tokens of any answer.
func text(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(word(i))
	}
	return b.String()
}

// finish is the finish_reason of the chat and completions APIs.
func (a answer) finish() string {
	if a.limited {
		return "length"
	}
	return "stop"
}

func (a answer) usage() object {
	return object{
		"prompt_tokens":         a.promptTokens,
		"completion_tokens":     a.tokens,
		"total_tokens":          a.promptTokens + a.tokens,
		"prompt_tokens_details": object{"cached_tokens": a.cachedTokens},
	}
}

// missing is the error for a body without the field that makes it a prompt.
func missing(field string) error { return fmt.Errorf("field %s: required", field) }
