package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Client sends requests to one gateway.
type Client struct {
	url    string
	model  string
	header http.Header
	http   *http.Client
}

// NewClient returns a client of the OpenAI API at baseURL (with /v1) that keeps
// up to connections idle connections; give it the largest number of requests
// in flight. The headers go with every request.
func NewClient(baseURL, model string, connections int, headers http.Header) *Client {
	return &Client{
		url: strings.TrimSuffix(baseURL, "/") + "/chat/completions", model: model, header: headers,
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
			DisableCompression: true,
		}},
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends one request and measures from begin on. It returns an Outcome in
// every case.
func (c *Client) do(ctx context.Context, q Request, begin time.Time) Outcome {
	o := Outcome{Prefix: q.Prefix}
	err := c.stream(ctx, q, begin, &o)
	o.Latency = time.Since(begin)
	if err != nil {
		o.Err = reason(err)
	}
	return o
}

func (c *Client) stream(ctx context.Context, q Request, begin time.Time, o *Outcome) error {
	req, err := c.newRequest(ctx, q)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	o.Status, o.Replica = resp.StatusCode, resp.Header.Get("x-replica")
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return readStream(resp.Body, func() { o.TTFT = time.Since(begin) }, o)
}

func (c *Client) newRequest(ctx context.Context, q Request) (*http.Request, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(map[string]any{
		"model":    c.model,
		"messages": []message{{"system", q.System}, {"user", q.User}},
		"stream":   true, "stream_options": map[string]bool{"include_usage": true},
		"max_tokens": q.OutputTokens,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("content-type", "application/json")
	return req, nil
}

// chunk is what is read of a streamed chat completion chunk.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens        int `json:"prompt_tokens"`
		CompletionTokens    int `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

var (
	errCutShort  = errors.New("stream ended before [DONE]")
	errNoContent = errors.New("stream has no content")
)

// maxEvent bounds a line of a stream in bytes.
const maxEvent = 1 << 20

// readStream reads server-sent events up to [DONE] and calls first at the first
// chunk that has content: the chunk before it carries only the role.
func readStream(body io.Reader, first func(), o *Outcome) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	seen := false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			if !seen {
				return errNoContent
			}
			return nil
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return errors.New("stream has an event that is no chat completion chunk")
		}
		if !seen && len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			seen = true
			first()
		}
		if c.Usage != nil {
			o.PromptTokens, o.OutputTokens = c.Usage.PromptTokens, c.Usage.CompletionTokens
			o.CachedTokens = c.Usage.PromptTokensDetails.CachedTokens
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errCutShort
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
