package usage

import (
	"bytes"
	"encoding/json"
	"errors"
)

// message is what is read of an answer or of an event of one.
type message struct {
	Usage *counts `json:"usage"`
	// Message is Anthropic's message_start, Response the last event of the responses API.
	Message  *inner `json:"message"`
	Response *inner `json:"response"`
	// Timings are llama.cpp's own, in each answer and in the last event of each stream,
	// whether the client has asked for the usage or not.
	Timings *timings `json:"timings"`

	Choices []choice `json:"choices"`
	// Delta is a piece of the answer: a string in the responses API, an object in
	// Anthropic's.
	Delta json.RawMessage `json:"delta"`
}

type inner struct {
	Usage *counts `json:"usage"`
}

type choice struct {
	Text  string          `json:"text"`
	Delta json.RawMessage `json:"delta"`
}

// counts is the usage of all APIs.
type counts struct {
	PromptTokens  *int64   `json:"prompt_tokens"`
	PromptDetails *details `json:"prompt_tokens_details"`

	InputTokens  *int64   `json:"input_tokens"`
	InputDetails *details `json:"input_tokens_details"`

	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
}

// timings are the tokens that were in the cache, and the others of the prompt.
type timings struct {
	CacheN  *int64 `json:"cache_n"`
	PromptN *int64 `json:"prompt_n"`
}

type details struct {
	CachedTokens *int64 `json:"cached_tokens"`
}

// decode reads a JSON object. Of one with a field of an unexpected type nothing is
// believed.
func decode(data []byte) (message, bool) {
	var m message
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return m, false
	}
	err := json.Unmarshal(data, &m)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return message{}, true
	}
	return m, err == nil
}

// usage returns the first usage that tells of the prompt.
func (m *message) usage() Result {
	candidates := [...]*counts{m.Usage, nil, nil}
	if m.Message != nil {
		candidates[1] = m.Message.Usage
	}
	if m.Response != nil {
		candidates[2] = m.Response.Usage
	}
	for _, c := range candidates {
		if c == nil {
			continue
		}
		if r := c.result(); r.Outcome != NoUsage {
			return r
		}
	}
	return m.Timings.result()
}

// result brings the counts of all APIs into one form. Anthropic's input_tokens are those
// that were neither read from the cache nor written to it; OpenAI's are all.
func (c *counts) result() Result {
	switch {
	case c.PromptTokens != nil:
		return of(c.PromptTokens, c.PromptDetails.cached())
	case c.InputTokens == nil:
		return Result{}
	case c.CacheRead != nil || c.CacheCreation != nil:
		read, total := *or(c.CacheRead), *c.InputTokens
		for _, more := range []int64{read, *or(c.CacheCreation)} {
			if total < 0 || more < 0 {
				return Result{}
			}
			total += more // negative if it overflows
		}
		return of(&total, &read)
	default:
		return of(c.InputTokens, c.InputDetails.cached())
	}
}

func (t *timings) result() Result {
	if t == nil || t.CacheN == nil || t.PromptN == nil {
		return Result{}
	}
	total := *t.CacheN + *t.PromptN // negative if it overflows; with a part below 0 refused too
	return of(&total, t.CacheN)
}

// maxTokens is more than what any prompt has: larger numbers are a defect, and would
// spoil the sums.
const maxTokens = 1 << 32

// of makes a result of numbers that make sense.
func of(tokens, cached *int64) Result {
	switch {
	case *tokens < 0 || *tokens > maxTokens:
		return Result{}
	case cached == nil:
		return Result{Outcome: NoCachedTokens, PromptTokens: *tokens}
	case *cached < 0 || *cached > *tokens:
		return Result{}
	}
	return Result{Outcome: Read, PromptTokens: *tokens, CachedTokens: *cached}
}

func or(n *int64) *int64 {
	if n == nil {
		return new(int64)
	}
	return n
}

func (d *details) cached() *int64 {
	if d == nil {
		return nil
	}
	return d.CachedTokens
}

// hasContent reports whether an event has a piece of the answer.
func (m *message) hasContent() bool {
	if filled(m.Delta) {
		return true
	}
	for _, c := range m.Choices {
		if c.Text != "" || filled(c.Delta) {
			return true
		}
	}
	return false
}

// filled reports whether a delta is a text, or has one: of the answer, of the reasoning,
// or of a call. The one that names the role has an empty one.
func filled(delta json.RawMessage) bool {
	var text string
	if json.Unmarshal(delta, &text) == nil {
		return text != ""
	}
	var d struct {
		Content          string          `json:"content"`
		Reasoning        string          `json:"reasoning"`
		ReasoningContent string          `json:"reasoning_content"`
		Refusal          string          `json:"refusal"`
		Text             string          `json:"text"`
		Thinking         string          `json:"thinking"`
		PartialJSON      string          `json:"partial_json"`
		ToolCalls        json.RawMessage `json:"tool_calls"`
		FunctionCall     json.RawMessage `json:"function_call"`
	}
	_ = json.Unmarshal(delta, &d) // what is no object has nothing
	return d.Content+d.Reasoning+d.ReasoningContent+d.Refusal+d.Text+d.Thinking+d.PartialJSON != "" ||
		present(d.ToolCalls) || present(d.FunctionCall)
}

// present reports whether a field is there and has something in it.
func present(value json.RawMessage) bool {
	switch string(bytes.Join(bytes.Fields(value), nil)) {
	case "", "null", "[]", "{}":
		return false
	}
	return true
}
