package traffic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/envoy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forms are of all kinds, with what becomes of them at a sound replica.
func forms() []Form {
	ok := []string{"200"}
	return []Form{
		{Name: "call", API: load.Chat, Size: 2 << 10, Tokens: 3, Ends: ok},
		{Name: "invocation", API: load.Invoke, Size: 2 << 10, Tokens: 2, Ends: ok},
		{Name: "completion", API: load.Completions, Size: 2 << 10, Tokens: 2, Ends: ok},
		{Name: "stream", API: load.Chat, Stream: true, Tokens: 5, TokenTime: 2 * time.Millisecond, Ends: ok},
		{Name: "invocation stream", API: load.Invoke, Stream: true, Tokens: 5, TokenTime: 2 * time.Millisecond, Ends: ok},
		{Name: "upload", API: load.Chat, Size: 64 << 10, Parts: 3, Ask: Teapot(), Ends: []string{"418"}},
		{Name: "chunked", API: load.Chat, Size: 64 << 10, Unsized: true, Ask: Teapot(), Ends: []string{"418"}},
		{Name: "cut", API: load.Chat, Tokens: 8, Stream: true, Ask: []string{"x-replica-reset", "mid"}, Ends: []string{Cut}},
		{Name: "left", API: load.Chat, Stream: true, Ask: []string{"x-replica-hold", "1"}, Patience: 50 * time.Millisecond, Ends: []string{Left}},
	}
}

func serve(t *testing.T) *replica.Fleet {
	t.Helper()
	f, err := replica.Listen([]string{"127.0.0.1:0"}, replica.Params{Engine: engine.Llama70B(), TimeScale: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What is sent arrives, as it was sent, and ends as it should.
func TestTraffic(t *testing.T) {
	f := serve(t)
	name := f.Addresses()[0]
	tr := Start(t.Context(), Options{URL: "http://" + name, Seed: 1, Name: "t", Groups: []Group{{Clients: 4, Forms: forms()}, {Clients: 1, Rate: 50, Forms: forms()[:1]}}})
	for tr.Ended() < 60 {
		if err := sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	tr.Pause()
	paused := tr.Ended()
	if uploads, streams := tr.Underway(); uploads != 0 || streams != 0 {
		t.Errorf("%d uploads and %d streams run in a pause", uploads, streams)
	}
	tr.Resume()
	tr.Stop()
	held := Form{Name: "held", API: load.Chat, Stream: true, Tokens: 2, Ask: []string{"x-replica-hold", "1"}, Ends: []string{"200"}}
	over := tr.Burst(5, &held, "Alike.")
	for f.Stats()[0].Held != 5 {
		if err := sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	f.Release()
	<-over
	sent := tr.Sent()
	if len(sent) < paused+5 {
		t.Errorf("%d were sent, %d before the pause", len(sent), paused)
	}
	got := make(map[string]replica.Record)
	for _, record := range f.Replicas()[0].Requests() {
		got[record.RequestID] = record
	}
	for _, q := range sent {
		record, ok := got[q.ID]
		if q.Failed() || !ok || !q.Matches(&record) || q.Outcome != Left && q.Replica != name {
			t.Errorf("%s ended %q at %q, arrived %v as %+v", q.Form.Name, q.Outcome, q.Replica, ok, record)
		}
		record.Body.SHA256 = strings.Repeat("0", 64)
		if q.Matches(&record) {
			t.Errorf("%s: other bytes match", q.Form.Name)
		}
	}
}

// The beginning of a body matches where the rest never came, and only there.
func TestMatchesABeginning(t *testing.T) {
	body := []byte("all of it")
	sum := func(b string) string { q := sentOf([]byte(b)); return q.Sum }
	q := sentOf(body)
	for _, tc := range []struct {
		name string
		got  replica.Record
		want bool
	}{
		{"whole", replica.Record{ContentLength: 9, Body: replica.Body{SHA256: sum("all of it"), Length: 9}}, true},
		{"whole, chunked", replica.Record{ContentLength: -1, Body: replica.Body{SHA256: sum("all of it"), Length: 9}}, true},
		{"another length", replica.Record{ContentLength: 8, Body: replica.Body{SHA256: sum("all of it"), Length: 9}}, false},
		{"too much", replica.Record{ContentLength: -1, Body: replica.Body{SHA256: sum("all of it!"), Length: 10}}, false},
		{"a part that claims to be all", replica.Record{ContentLength: -1, Body: replica.Body{SHA256: sum("all"), Length: 3}}, false},
		{"a part", replica.Record{ContentLength: 9, BodyError: "EOF", Body: replica.Body{SHA256: sum("all"), Length: 3}}, true},
		{"another part", replica.Record{ContentLength: 9, BodyError: "EOF", Body: replica.Body{SHA256: sum("lla"), Length: 3}}, false},
	} {
		if got := q.Matches(&tc.got); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// An answer that is not all of it is no success.
func TestWhole(t *testing.T) {
	for _, tc := range []struct {
		form Form
		text string
		want bool
	}{
		{Form{API: load.Chat, Tokens: 2}, `{"usage":{"completion_tokens":2}}`, true},
		{Form{API: load.Chat, Tokens: 3}, `{"usage":{"completion_tokens":2}}`, false},
		{Form{API: load.Chat, Tokens: 2}, `{"usage":{"completion_tokens":2}`, false},
		{Form{API: load.Chat, Tokens: 1, Stream: true}, "data: {\"content\":\" a\"}\n\ndata: [DONE]\n\n", true},
		{Form{API: load.Chat, Tokens: 1, Stream: true}, "data: {\"content\":\" a\"}\n\n", false},
		{Form{API: load.Chat, Tokens: 2, Stream: true}, "data: {\"content\":\" a\"}\n\ndata: [DONE]\n\n", false},
		{Form{API: load.Invoke, Tokens: 1, Stream: true}, "data: {\"token\":{\"text\":\" a\"}}\n\ndata: {\"generated_text\":\" a\"}\n\n", true},
		{Form{API: load.Invoke, Tokens: 1, Stream: true}, "data: {\"token\":{\"text\":\" a\"}}\n\n", false},
	} {
		if err := tc.form.whole([]byte(tc.text)); (err == nil) != tc.want {
			t.Errorf("%+v: %q: %v", tc.form, tc.text, err)
		}
	}
}

// The same number makes the same body, another one another.
func TestBody(t *testing.T) {
	f := forms()[0]
	bodies := make(map[string]bool)
	for n := range 50 {
		one, err := f.Body(7, n)
		again, _ := f.Body(7, n)
		if err != nil || !bytes.Equal(one.Body, again.Body) || one.Tenant != again.Tenant || len(one.Body) < f.Size-200 {
			t.Fatalf("request %d: %d and %d bytes, %v", n, len(one.Body), len(again.Body), err)
		}
		bodies[string(one.Body)] = true
	}
	if len(bodies) != 50 {
		t.Errorf("50 requests have %d bodies", len(bodies))
	}
}

// What responses are to tell has a place in the shipped configuration; headers
// without it say nothing.
func TestReveal(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := Reveal(shipped)
	if err != nil || !bytes.Contains(changed, []byte(choicesHeader)) {
		t.Errorf("%v", err)
	}
	if _, err := Reveal([]byte("nothing")); err == nil {
		t.Error("any configuration will do")
	}
	for header, want := range map[string]int{"": 0, "-": 0, "a:1": 1, `"a:1,b:2"`: 2} {
		q := new(Sent)
		q.note(&http.Response{Header: http.Header{http.CanonicalHeaderKey(choicesHeader): {header}}})
		if len(q.Choices) != want {
			t.Errorf("%q: %q", header, q.Choices)
		}
	}
}

// sentOf is a request of that body.
func sentOf(body []byte) *Sent {
	sum := sha256.Sum256(body)
	return &Sent{
		Sum: hex.EncodeToString(sum[:]), Length: int64(len(body)),
		body: func() ([]byte, error) { return body, nil },
	}
}
