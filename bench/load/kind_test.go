package load

import (
	"bytes"
	"encoding/json"
	"testing"
)

var prompt = Prompt{Prefix: 3, Tenant: "acme", Messages: []Message{{"system", `say "no"`}, {"user", "why?"}}}

func TestKindBodies(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		path, body string
	}{
		{Kind{API: Chat}, "/v1/chat/completions", `{"messages":[{"role":"system","content":"say \"no\""},{"role":"user","content":"why?"}]}`},
		{
			Kind{API: Chat, Model: "m", Stream: true, OutputTokens: 5},
			"/v1/chat/completions",
			`{"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"say \"no\""},{"role":"user","content":"why?"}]}`,
		},
		{
			Kind{API: Completions, Model: "m", ModelLast: true},
			"/v1/completions",
			`{"prompt":"say \"no\"\nwhy?","model":"m"}`,
		},
		{
			Kind{API: Invoke, Model: "m", Stream: true, OutputTokens: 5},
			"/invocations",
			`{"parameters":{"max_new_tokens":5},"stream":true,"inputs":"say \"no\"\nwhy?"}`,
		},
	} {
		q, err := c.kind.Request(prompt)
		if err != nil {
			t.Fatal(err)
		}
		if string(q.Body) != c.body || q.Path != c.path || q.Prefix != 3 || q.Tenant != "acme" || q.Stream != c.kind.Stream {
			t.Errorf("%+v:\n got %s %s (%+v)\nwant %s %s", c.kind, q.Path, q.Body, q, c.path, c.body)
		}
	}
	if _, err := (Kind{API: "soap"}).Request(prompt); err == nil {
		t.Error("an API that does not exist is accepted")
	}
}

func TestSized(t *testing.T) {
	for _, kind := range []Kind{
		{API: Chat, Model: "m"},
		{API: Chat, Model: "m", ModelLast: true, Stream: true, OutputTokens: 1},
		{API: Completions, Model: "m"},
		{API: Invoke},
	} {
		for _, size := range []int{1 << 10, 4096, 1 << 20} {
			requests, err := kind.Sized(size, 3, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range requests {
				if len(q.Body) != size || !json.Valid(q.Body) {
					t.Errorf("%+v: body %d has %d bytes, want %d of JSON", kind, i, len(q.Body), size)
				}
				if i > 0 && bytes.Equal(q.Body, requests[i-1].Body) {
					t.Errorf("%+v: bodies %d and %d are equal", kind, i-1, i)
				}
			}
		}
	}
	if _, err := (Kind{API: Chat, Model: "m"}).Sized(40, 1, 1); err == nil {
		t.Error("40 bytes are too few for a chat, and nobody says so")
	}
}
