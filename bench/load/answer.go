package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer and maxEvent bound an answer in one piece and a line of a stream, in
// bytes.
const (
	maxAnswer = 64 << 20
	maxEvent  = 1 << 20
)

// readAnswer reads a response to its end and notes what it says.
func readAnswer(resp *http.Response, q *Request, begin time.Time, o *Outcome) error {
	o.Status, o.Replica = resp.StatusCode, resp.Header.Get("x-replica")
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if q.Stream {
		return readStream(resp.Body, func() { o.TTFT = time.Since(begin) }, o)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	var a struct {
		Usage *usage `json:"usage"`
	}
	if json.Unmarshal(body, &a) != nil {
		return errNoJSON
	}
	a.Usage.note(o)
	return nil
}

// usage is the server's count of tokens.
type usage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) note(o *Outcome) {
	if u != nil {
		o.PromptTokens, o.OutputTokens, o.CachedTokens = u.PromptTokens, u.CompletionTokens, u.PromptTokensDetails.CachedTokens
	}
}

// chunk is what is read of a streamed event, of any of the APIs.
type chunk struct {
	Choices []struct {
		Delta struct { // chat
			Content string `json:"content"`
		} `json:"delta"`
		Text string `json:"text"` // completions
	} `json:"choices"`
	Token struct { // invoke
		Text string `json:"text"`
	} `json:"token"`
	GeneratedText *string `json:"generated_text"` // invoke, in the last event
	Usage         *usage  `json:"usage"`
}

func (c *chunk) hasContent() bool {
	return c.Token.Text != "" || len(c.Choices) > 0 && (c.Choices[0].Delta.Content != "" || c.Choices[0].Text != "")
}

var (
	errNoJSON    = errors.New("answer is no JSON object")
	errCutShort  = errors.New("stream ended before its last event")
	errNoContent = errors.New("stream has no content")
	errNoChunk   = errors.New("stream has an event that is no chunk of a completion")
)

// readStream reads server-sent events up to [DONE], or the whole text of an
// invocation, and calls first at the first chunk that has content: the chunk
// before it carries only the role.
func readStream(body io.Reader, first func(), o *Outcome) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	seen, complete := false, false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			complete = true
			continue // to the end, so that the connection can be used again
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return errNoChunk
		}
		if !seen && c.hasContent() {
			seen = true
			first()
		}
		complete = complete || c.GeneratedText != nil
		c.Usage.note(o)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	switch {
	case !complete:
		return errCutShort
	case !seen:
		return errNoContent
	}
	return nil
}

// reason is a short text for an error, equal for equal causes, so that errors
// can be counted: without the address and port that net/http puts into it.
func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "deadline exceeded"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
