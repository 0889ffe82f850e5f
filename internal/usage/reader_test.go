package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// read gives a reader an answer in pieces of n bytes, and returns what it read and
// after how many bytes it knew of the first piece of text, -1 if never.
func read(f Format, answer string, n int) (Result, int) {
	r, first := NewReader(f), -1
	for at := 0; at < len(answer); at += n {
		end := min(at+n, len(answer))
		r.Write([]byte(answer[at:end]))
		if r.Content() && first < 0 {
			first = end
		}
	}
	return r.Finish(), first
}

func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

const (
	role     = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
	hello    = `{"choices":[{"index":0,"delta":{"content":"hello"}}]}`
	finished = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chatEnd  = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":64}}}`
	done     = `[DONE]`
	llamaEnd = `{"choices":[{"finish_reason":"length","index":0,"delta":{}}],"timings":{"cache_n":40,"prompt_n":4,"prompt_ms":5.25,"predicted_n":4}}`
)

var answers = []struct {
	name   string
	format Format
	answer string
	want   Result
	// first is the event that has the first piece of text; empty if none has.
	first string
}{
	{"chat", JSON, `{"choices":[{"message":{"content":"usage"}}],"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}`, Result{Read, 100, 64}, ""},
	{"nothing cached", JSON, `{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":0}}}`, Result{Read, 100, 0}, ""},
	{"no details", JSON, `{"usage":{"prompt_tokens":100,"prompt_tokens_details":null}}`, Result{NoCachedTokens, 100, 0}, ""},
	{"responses", JSON, `{"object":"response","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64}}}`, Result{Read, 100, 64}, ""},
	{"anthropic", JSON, `{"type":"message","content":[],"usage":{"input_tokens":30,"cache_read_input_tokens":64,"cache_creation_input_tokens":6}}`, Result{Read, 100, 64}, ""},
	{"embeddings", JSON, `{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}`, Result{NoCachedTokens, 8, 0}, ""},
	{"an error", JSON, `{"message":"no such model","usage":null}`, Result{}, ""},
	{"numbers of no kind", JSON, `{"usage":{"prompt_tokens":"many"},"choices":3}`, Result{}, ""},
	{"below 0", JSON, `{"usage":{"prompt_tokens":-1}}`, Result{}, ""},
	{"more cached than there are", JSON, `{"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}}`, Result{}, ""},
	{"less than nothing, made up for", JSON, `{"usage":{"input_tokens":-5,"cache_creation_input_tokens":10}}`, Result{}, ""},
	{"more than a prompt has", JSON, `{"usage":{"input_tokens":4294967297,"cache_read_input_tokens":1}}`, Result{}, ""},
	{"beyond all numbers with the second addition", JSON, `{"usage":{"input_tokens":9223372036854775806,"cache_read_input_tokens":1,"cache_creation_input_tokens":1}}`, Result{}, ""},
	{"beyond all numbers with the first", JSON, `{"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":1,"cache_creation_input_tokens":1}}`, Result{}, ""},
	{"beyond all numbers", JSON, `{"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807}}`, Result{}, ""},
	{"no JSON", JSON, "hello", Result{Outcome: Malformed}, ""},
	{"a list", JSON, "[]", Result{Outcome: Malformed}, ""},
	{"nothing", JSON, "", Result{Outcome: Malformed}, ""},
	{"cut short", JSON, `{"usage":{"prompt_tokens":1`, Result{Outcome: Malformed}, ""},
	{"too large", JSON, `{"x":"` + strings.Repeat("x", MaxBody) + `","usage":{"prompt_tokens":1}}`, Result{Outcome: TooLarge}, ""},

	{"chat stream", Events, events(role, hello, hello, finished, chatEnd, done), Result{Read, 100, 64}, hello},
	{"without a last line", Events, strings.TrimSpace(events(role, hello, chatEnd)), Result{Read, 100, 64}, hello},
	{"windows lines", Events, strings.ReplaceAll(events(role, hello, chatEnd), "\n", "\r\n"), Result{Read, 100, 64}, hello},
	{"no space", Events, strings.ReplaceAll(events(role, hello, chatEnd), "data: ", "data:"), Result{Read, 100, 64}, hello},
	{"comments", Events, ": ping\n\nevent: x\nid: 1\n" + events(hello, chatEnd), Result{Read, 100, 64}, hello},
	{"without usage", Events, events(role, hello, finished, done), Result{}, hello},
	{"usage that grows", Events, events(`{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}}`, hello, chatEnd), Result{Read, 100, 64}, hello},
	{"usage that tells less", Events, events(chatEnd, hello, `{"usage":{"prompt_tokens":3}}`), Result{Read, 100, 64}, hello},
	{"role alone", Events, events(role, finished, chatEnd), Result{Read, 100, 64}, ""},
	{"completions", Events, events(`{"choices":[{"text":""}]}`, `{"choices":[{"text":"a"}]}`), Result{}, `{"choices":[{"text":"a"}]}`},
	{
		"reasoning", Events, events(role, `{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]}`, hello),
		Result{},
		`{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]}`,
	},
	{
		"a call", Events, events(`{"choices":[{"delta":{"tool_calls":[]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`),
		Result{},
		`{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`,
	},
	{
		"responses stream", Events, events(
			`{"type":"response.created","response":{"usage":null}}`, `{"type":"response.output_text.delta","delta":"hello"}`,
			`{"type":"response.completed","response":{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64}}}}`),
		Result{Read, 100, 64},
		`{"type":"response.output_text.delta","delta":"hello"}`,
	},
	{
		"anthropic stream", Events, "event: message_start\n" + events(
			`{"type":"message_start","message":{"usage":{"input_tokens":36,"cache_read_input_tokens":64,"output_tokens":0}}}`,
			`{"type":"content_block_start","content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"hello"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`),
		Result{Read, 100, 64},
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"hello"}}`,
	},
	{"llama.cpp's timings", Events, events(role, hello, llamaEnd, done), Result{Read, 44, 40}, hello},
	{"timings and usage", Events, events(role, hello, llamaEnd, chatEnd, done), Result{Read, 100, 64}, hello},
	{"both in one", JSON, `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":3}},"timings":{"cache_n":1,"prompt_n":1}}`, Result{Read, 9, 3}, ""},
	{"timings of nothing", JSON, `{"timings":{"prompt_n":1}}`, Result{}, ""},
	{"timings below 0", JSON, `{"timings":{"cache_n":-1,"prompt_n":5}}`, Result{}, ""},
	{"timings below 0, made up for", JSON, `{"timings":{"cache_n":5,"prompt_n":-1}}`, Result{}, ""},
	{"timings beyond all numbers", JSON, `{"timings":{"cache_n":9223372036854775807,"prompt_n":1}}`, Result{}, ""},
	{"a long line between", Events, events(role, `{"x":"`+strings.Repeat("x", MaxLine)+`"}`, hello, chatEnd), Result{Read, 100, 64}, hello},
	{"a long last line", Events, events(hello, `{"x":"`+strings.Repeat("x", MaxLine)+`","usage":{"prompt_tokens":1}}`), Result{Outcome: TooLarge}, hello},
	{"no events", Events, "hello\n\n", Result{}, ""},
}

// Each answer is read the same in one piece, byte by byte and in between, and the first
// piece of text is known as soon as its line has come.
func TestAnswers(t *testing.T) {
	for _, tc := range answers {
		for _, n := range []int{len(tc.answer) + 1, 1, 7, 4096} {
			if n == 1 && len(tc.answer) > 200_000 {
				continue
			}
			got, first := read(tc.format, tc.answer, n)
			if got != tc.want {
				t.Errorf("%s in pieces of %d: %+v, want %+v", tc.name, n, got, tc.want)
			}
			want := -1
			if at := strings.Index(tc.answer, tc.first); tc.first != "" {
				want = strings.Index(tc.answer[at:], "\n") + at + 1
			}
			if n == 1 && first != want {
				t.Errorf("%s: text at byte %d, want %d", tc.name, first, want)
			}
			if (first < 0) != (want < 0) {
				t.Errorf("%s in pieces of %d: text at %d, want %d", tc.name, n, first, want)
			}
		}
	}
}

// What a real llama-server (11434) answered, the stream without include_usage: a prompt of
// 50 tokens, of which 49 were cached.
func TestLlamaServer(t *testing.T) {
	for name, format := range map[string]Format{"llama-server-stream.txt": Events, "llama-server-whole.json": JSON} {
		answer, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 100, len(answer)} {
			got, first := read(format, string(answer), n)
			if got != (Result{Read, 50, 49}) || (first < 0) != (format == JSON) {
				t.Errorf("%s in pieces of %d: %+v, text at %d", name, n, got, first)
			}
		}
	}
}

// Whatever numbers an engine tells in whatever form come out as they are.
func TestNumbers(t *testing.T) {
	forms := []string{
		`{"usage":{"prompt_tokens":%[1]d,"prompt_tokens_details":{"cached_tokens":%[2]d}}}`,
		`{"response":{"usage":{"input_tokens":%[1]d,"input_tokens_details":{"cached_tokens":%[2]d}}}}`,
		`{"usage":{"input_tokens":%[3]d,"cache_read_input_tokens":%[2]d}}`,
		`{"timings":{"cache_n":%[2]d,"prompt_n":%[3]d}}`,
		`{"message":{"usage":{"input_tokens":%[3]d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%[2]d}}}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1<<30).Draw(t, "tokens")
		cached := rapid.Int64Range(0, tokens).Draw(t, "cached")
		text := fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form"), tokens, cached, tokens-cached)
		format := rapid.SampledFrom([]Format{JSON, Events}).Draw(t, "format")
		if format == Events {
			text = events(role, hello, text, done)
		}
		if got, _ := read(format, text, rapid.IntRange(1, len(text)).Draw(t, "piece")); got != (Result{Read, tokens, cached}) {
			t.Fatalf("%+v of %d tokens, %d cached: %s", got, tokens, cached, text)
		}
	})
}

// A reader of anything keeps a bounded part of it.
func TestHeldIsBounded(t *testing.T) {
	for format, most := range map[Format]int{JSON: MaxBody * 5 / 4, Events: MaxLine * 5 / 4} {
		r, piece := NewReader(format), []byte(strings.Repeat("x", 1000))
		for range 5000 {
			if r.Write(piece); r.Held() > most {
				t.Fatalf("format %d: %d bytes are held, want at most %d", format, r.Held(), most)
			}
		}
		if r.Finish(); r.Held() != 0 {
			t.Errorf("format %d: %d bytes are held in the end", format, r.Held())
		}
	}
}

// Events of a stream whose first text has come cost no allocation.
func TestEventsAreNotDecodedAllTheTime(t *testing.T) {
	r := NewReader(Events)
	event := []byte(events(hello))
	r.Write(event)
	if got := testing.AllocsPerRun(100, func() { r.Write(event) }); got != 0 {
		t.Errorf("%v allocations an event", got)
	}
}
