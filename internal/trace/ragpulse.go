package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ragLine is a line of any of RAGPulse's six files: a request, or the length of a
// content. The ids of all kinds of contents are one range of numbers.
type ragLine struct {
	Timestamp jsontext.Value `json:"timestamp"`
	Output    *int           `json:"output_length"`
	Contents  *ragContents   `json:"hash_ids"`
	Session   string         `json:"session_id"`

	System  *uint64 `json:"sys_prompt_id"`
	Passage *uint64 `json:"passage_id"`
	History *uint64 `json:"history_id"`
	User    *uint64 `json:"user_input_id"`
	Web     *uint64 `json:"web_search_id"`
	Tokens  *int    `json:"token_length"`
}

// ragContents are the contents of a prompt.
type ragContents struct {
	System   []uint64 `json:"sys_prompt"`
	Passages []uint64 `json:"passages_ids"`
	History  []uint64 `json:"history"`
	Web      []uint64 `json:"web_search"`
	User     []uint64 `json:"user_input"`
}

// inOrder returns the ids in the order of the prompt, which is that of the
// origin's own replay script.
func (c ragContents) inOrder() []uint64 {
	return slices.Concat(c.System, c.Passages, c.History, c.Web, c.User)
}

// ragRequest waits until the lengths of its contents are known.
type ragRequest struct {
	at     place
	record record
	ids    []uint64
}

// ragReader collects all lines, for a request may come before its contents.
type ragReader struct {
	limits   Limits
	requests []ragRequest
	tokens   map[uint64]int
	ids      int // of all requests
}

func readRAGPulse(in *input, o Options, b builder) error {
	r := &ragReader{limits: o.Limits, tokens: make(map[uint64]int)}
	if err := in.lines(r.line); err != nil {
		return err
	}
	b.granularity(1)
	b.note("an input is as long as its contents; what the origin counts besides, the few tokens of a template, is left out")
	for _, q := range r.requests {
		err := r.resolve(&q)
		if err == nil {
			err = b.add(q.record)
		}
		if err != nil {
			return q.at.wrap(err)
		}
	}
	return nil
}

func (r *ragReader) line(at place, line []byte) error {
	var l ragLine
	if err := decode(line, &l); err != nil {
		return err
	}
	if l.Contents != nil {
		return r.request(at, l)
	}
	for _, id := range []*uint64{l.System, l.Passage, l.History, l.User, l.Web} {
		if id != nil {
			return r.content(*id, l.Tokens)
		}
	}
	return missing("hash_ids, and no id of a content either")
}

func (r *ragReader) request(at place, l ragLine) (err error) {
	q := ragRequest{at: at, ids: l.Contents.inOrder(), record: record{session: l.Session}}
	if l.Output == nil {
		return missing("output_length")
	}
	q.record.output = *l.Output
	if q.record.at, err = timeOf("timestamp", l.Timestamp, time.Second); err != nil {
		return err
	}
	// An id takes as much room as a chunk, but a content may be shorter.
	if r.ids += len(q.ids); r.ids > r.limits.Chunks {
		return fmt.Errorf("more ids of contents than the bound of %d for the whole trace", r.limits.Chunks)
	}
	if len(r.requests) == r.limits.Requests {
		return fmt.Errorf("one request more than the bound of %d", r.limits.Requests)
	}
	if len(l.Session) > maxName {
		return fmt.Errorf("session_id of %d bytes: want at most %d", len(l.Session), maxName)
	}
	r.requests = append(r.requests, q)
	return nil
}

func (r *ragReader) content(id uint64, tokens *int) error {
	switch known, ok := r.tokens[id]; {
	case tokens == nil:
		return missing("token_length")
	case *tokens < 0 || *tokens > MaxTokens:
		return fmt.Errorf("token_length %d: want 0 to %d", *tokens, MaxTokens)
	case ok && known != *tokens:
		return fmt.Errorf("token_length %d of content %d, which has %d elsewhere", *tokens, id, known)
	case !ok && len(r.tokens) == r.limits.Requests:
		return fmt.Errorf("one content more than the bound of %d", r.limits.Requests)
	}
	r.tokens[id] = *tokens
	return nil
}

// resolve fills in the pieces of a request.
func (r *ragReader) resolve(q *ragRequest) error {
	q.record.pieces = make([]piece, 0, len(q.ids))
	for _, id := range q.ids {
		tokens, ok := r.tokens[id]
		if !ok {
			return fmt.Errorf("hash_ids: no file gives the length of content %d", id)
		}
		if q.record.input += tokens; q.record.input > MaxTokens {
			return fmt.Errorf("contents of more than %d tokens", MaxTokens)
		}
		q.record.pieces = append(q.record.pieces, piece{id: id, tokens: tokens})
	}
	return nil
}
