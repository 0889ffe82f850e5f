package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// request is what the engine needs of a request body, whatever its API.
type request struct {
	model        string
	prompt       string // rendered text
	salt         string
	outputTokens int // 0: not limited by the request
	stream       bool
	includeUsage bool
}

// wireRequest is the union of the request bodies of all APIs served.
type wireRequest struct {
	Model        string          `json:"model"`
	Messages     []wireMessage   `json:"messages"`
	Prompt       json.RawMessage `json:"prompt"`
	Input        json.RawMessage `json:"input"`
	Inputs       json.RawMessage `json:"inputs"`
	System       json.RawMessage `json:"system"`
	Instructions string          `json:"instructions"`
	Tools        json.RawMessage `json:"tools"`
	CacheSalt    string          `json:"cache_salt"`
	Stream       bool            `json:"stream"`

	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
	MaxOutputTokens     int `json:"max_output_tokens"`
	Parameters          struct {
		MaxNewTokens int `json:"max_new_tokens"`
	} `json:"parameters"`
}

type wireMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

func decodeWire(body []byte) (wireRequest, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return w, fmt.Errorf("request body of %d bytes: %w", len(body), withoutValue(err))
	}
	return w, nil
}

// withoutValue keeps the position of a JSON error and drops the text around it.
func withoutValue(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: error at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("field %s: want %s", kind.Field, kind.Type)
	default:
		return errors.New("not JSON")
	}
}

func (w wireRequest) request(prompt string) request {
	return request{
		model: w.Model, prompt: prompt, salt: w.CacheSalt, stream: w.Stream,
		outputTokens: max(w.MaxTokens, w.MaxCompletionTokens, w.MaxOutputTokens, w.Parameters.MaxNewTokens, 0),
		includeUsage: w.StreamOptions.IncludeUsage,
	}
}

// renderChat is the chat template: the tools, then each message after a line
// with its role, then the role line of the answer. An answer appended to it is
// a prefix of the next turn's prompt, so conversations hit their own past.
func renderChat(tools, system json.RawMessage, messages []wireMessage) string {
	var b strings.Builder
	if present(tools) {
		b.WriteString("<|tools|>\n" + string(tools) + "\n")
	}
	if present(system) {
		b.WriteString("<|system|>\n" + contentText(system) + "\n")
	}
	for _, m := range messages {
		b.WriteString("<|" + m.Role + "|>\n" + contentText(m.Content))
		if present(m.ToolCalls) {
			b.Write(m.ToolCalls)
		}
		b.WriteByte('\n')
	}
	b.WriteString("<|assistant|>\n")
	return b.String()
}

// contentText returns the text of a content: a string, or a list of parts. A
// part without text (an image, a call) counts with its whole JSON.
func contentText(raw json.RawMessage) string {
	var text string
	if !present(raw) || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(partText(part))
	}
	return b.String()
}

func partText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var part struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &part) == nil && part.Text != "" {
		return part.Text
	}
	return string(raw)
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
