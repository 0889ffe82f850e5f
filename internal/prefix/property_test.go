package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// paths has one path an API.
var paths = [numAPIs]string{
	Other: "/mcp", Chat: "/v1/chat/completions", Completions: "/v1/completions", Responses: "/v1/responses",
	Messages: "/v1/messages", Embeddings: "/v1/embeddings", Rerank: "/rerank", Score: "/score",
	Generate: "/generate", Tokenize: "/tokenize", Converse: "/model/m%2Fx/converse", OllamaChat: "/api/chat",
	OllamaGenerate: "/api/generate", Gemini: "/v1beta/models/gem:generateContent", Invocations: "/invocations",
}

// writer spells a random JSON document.
type writer struct {
	t   *rapid.T
	api API
	b   strings.Builder
}

func (w *writer) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

func pickOf[T any](w *writer, of ...T) T { return of[w.pick(len(of))] }

func (w *writer) space() { w.b.WriteString(pickOf(w, "", "", "", " ", "\n", "\r\n\t")) }

// str writes a string, each character spelt in one of its ways.
func (w *writer) str(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r < 0x20 || r == utf8.RuneError || w.pick(12) == 0:
			w.escape(r)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}

func (w *writer) escape(r rune) {
	switch {
	case r == utf8.RuneError:
		w.b.WriteString(pickOf(w, `\ud800`, `\udfff`, "\xff", "\xe2\x82", "\xf0\x9f\x98", "\ufffd"))
	case r > 0xFFFF:
		r -= 0x10000
		fmt.Fprintf(&w.b, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
	case r == '\n' && w.pick(2) == 0:
		w.b.WriteString(`\n`)
	case (r == '"' || r == '\\' || r == '/') && w.pick(2) == 0:
		w.b.WriteString(`\` + string(r))
	default:
		fmt.Fprintf(&w.b, `\u%04x`, r)
	}
}

func (w *writer) words() string {
	switch w.pick(8) {
	case 0:
		return ""
	case 1:
		return strings.Repeat(pickOf(w, "ab ", "é", "\"", "\\", "🚲", "\n", "店"), w.pick(300))
	case 2:
		if w.pick(20) == 0 {
			return strings.Repeat("long é", 500+w.pick(500)) + pickOf(w, "1", "2")
		}
		return billingHeader + " cch=" + string(rune('a'+w.pick(3)))
	}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(
		[]string{"wheel", " ", "\n", "é", "e\u0301", "🔧", "\ufffd", "\"", "\\", "\x00", "/", "line one, two"}), 0, 12).Draw(w.t, "words"), "")
}

func (w *writer) list(n int, element func()) {
	w.b.WriteByte('[')
	for i := range n {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.space()
		element()
		w.space()
	}
	w.b.WriteByte(']')
}

func (w *writer) object(n int, member func() (string, func())) {
	w.b.WriteByte('{')
	w.space()
	for i := range n {
		if i > 0 {
			w.b.WriteByte(',')
			w.space()
		}
		name, value := member()
		w.str(name)
		w.space()
		w.b.WriteByte(':')
		w.space()
		value()
		w.space()
	}
	w.b.WriteByte('}')
}

// anything writes any value.
func (w *writer) anything(depth int) {
	kind := w.pick(8)
	if depth <= 0 {
		kind = w.pick(4)
	}
	switch kind {
	case 0, 1:
		w.str(w.words())
	case 2:
		w.b.WriteString(pickOf(w, "0", "-1", "12.5e3", "true", "false", "null", "128000"))
	case 3:
		w.b.WriteString(pickOf(w, "null", "[]", "{}", `""`))
	case 4, 5:
		w.list(w.pick(4), func() { w.anything(depth - 1) })
	case 6:
		w.object(w.pick(4), func() (string, func()) {
			return pickOf(w, "url", "text", "content", "type", "cache_control", "messages", "x"), func() { w.anything(depth - 1) }
		})
	case 7:
		w.nested()
	}
}

// nested writes something deep, around the limit or far beyond.
func (w *writer) nested() {
	n := pickOf(w, 3, MaxDepth-6, MaxDepth-4, MaxDepth-3, MaxDepth-2, MaxDepth-1, MaxDepth, 200)
	open, shut := pickOf(w, "[", `{"a":`, `{"content":[`), ""
	switch open {
	case "[":
		shut = "]"
	case `{"a":`:
		shut = "}"
	default:
		shut = "]}"
		n /= 2
	}
	w.b.WriteString(strings.Repeat(open, n) + `"deep"` + strings.Repeat(shut, n))
}

func (w *writer) typ() string {
	return pickOf(w, "text", "text", "input_text", "output_text", "refusal", "image_url", "tool_result", "web_search_tool_result",
		"tool_use", "thinking", "", "message", "function_call_output", "function_call", "reasoning", strings.Repeat("é", 40), "é\n")
}

// content writes what may stand for content.
func (w *writer) content(depth int) {
	switch kind := w.pick(8); {
	case kind < 3:
		w.str(w.words())
	case kind == 3 || depth <= 0:
		w.anything(1)
	case kind == 4:
		w.part(depth - 1)
	default:
		w.list(w.pick(4), func() {
			if w.pick(4) == 0 {
				w.anything(2)
				return
			}
			w.part(depth - 1)
		})
	}
}

func (w *writer) part(depth int) {
	n := w.pick(5)
	if w.pick(20) == 0 {
		n = 20 + w.pick(60)
	}
	w.object(n, func() (string, func()) {
		name := pickOf(w, "type", "type", "text", "text", "refusal", "content", "toolResult", "image_url", "cache_control",
			"toolUse", "name", strings.Repeat("x", 30+w.pick(60)), fmt.Sprint("n", w.pick(50)), "output", "parts")
		return name, func() {
			switch {
			case name == "type" && w.pick(8) > 0:
				w.str(w.typ())
			case name == "text" && w.pick(8) > 0:
				w.str(w.words())
			case name == "content" || name == "toolResult" || name == "output" || name == "parts":
				w.content(depth)
			default:
				w.anything(2)
			}
		}
	})
}

func (w *writer) message() {
	if w.pick(12) == 0 {
		w.anything(2)
		return
	}
	w.object(w.pick(4), func() (string, func()) {
		name := pickOf(w, "content", "content", "parts", "output", "images", "role", "type", "tool_calls", "text")
		return name, func() {
			switch name {
			case "content", "parts", "output":
				w.content(3)
			case "type":
				w.str(w.typ())
			default:
				w.anything(2)
			}
		}
	})
}

func (w *writer) prompt() {
	switch w.pick(5) {
	case 0, 1:
		w.str(w.words())
	case 2:
		w.anything(3)
	case 3:
		w.list(w.pick(4), func() { w.content(1) })
	default:
		ids := func() {
			w.list(w.pick(300), func() { w.b.WriteString(pickOf(w, "1", "23", "128000", "7", "null")) })
		}
		if w.pick(2) == 0 {
			ids()
			return
		}
		w.list(w.pick(3), ids)
	}
}

// source writes the value of a member that holds text.
func (w *writer) source(v view) {
	switch {
	case w.pick(10) == 0:
		w.anything(3)
	case v == viewContent:
		w.content(3)
	case v == viewMessage:
		w.message()
	case v == viewMessages || v == viewItems:
		w.list(w.pick(5), w.message)
	default:
		w.prompt()
	}
}

func (w *writer) field() {
	switch w.pick(6) {
	case 0:
		w.anything(2)
	case 1:
		w.str(strings.Repeat(pickOf(w, "n", "é", "名"), 50+w.pick(300)))
	case 2:
		w.list(w.pick(3), func() { w.anything(0) })
	default:
		w.str(pickOf(w, "m", "tenant-a", "org/model-7b", "", " x", "é"))
	}
}

// document writes a request of the API.
func document(t *rapid.T, api API) []byte {
	w := &writer{t: t, api: api}
	w.b.WriteString(pickOf(w, "", "", " \n", "\xEF\xBB\xBF"))
	w.object(w.pick(9), func() (string, func()) {
		sources := textMembers[api]
		if len(sources) > 0 && w.pick(2) == 0 {
			m := sources[w.pick(min(len(sources), 4))]
			return m.name, func() { w.source(m.view) }
		}
		name := pickOf(w, "model", "prompt_cache_key", "cache_salt", "lora_path", "adapter_id", "parameters", "tools", "x", "messages")
		return name, func() {
			switch name {
			case "parameters":
				w.object(w.pick(3), func() (string, func()) { return pickOf(w, "adapter_id", "y"), w.field })
			case "tools":
				w.anything(4)
			case "messages", "x":
				w.anything(3)
			default:
				w.field()
			}
		}
	})
	w.b.WriteString(pickOf(w, "", "", "\n", "{}", "trailing"))
	return []byte(w.b.String())
}

// compare fails unless the scanner, fed some chunks, agrees with the twin.
func compare(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, api API, header string, body []byte, n int, chunks [][]byte,
) {
	t.Helper()
	_, pathModel := Classify(paths[api])
	want := twinRead(api, pathModel, header, body, n)
	r, text := readWhole(Head{Path: paths[api], TenantHeader: header}, n, chunks...)
	got := twinResult{r.Kind, r.Key, slices.Clone(r.Levels), r.Chars, text, r.Tenant, r.Model, r.Adapter, r.CacheSalt}
	if r.Kind == None {
		want.tenant, want.model, want.adapter, want.salt = r.Tenant, r.Model, r.Adapter, r.CacheSalt
	}
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Fatalf("%v N=%d\nbody %q\nscanner %+v\ntwin    %+v", api, n, body, got, want)
	}
}

func TestScannerAgreesWithTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		api := API(rapid.IntRange(0, int(numAPIs)-1).Draw(t, "api"))
		body := document(t, api)
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 1200)).Draw(t, "N")
		header := rapid.SampledFrom([]string{"", "", "tenant-h", " bad"}).Draw(t, "header")
		seed := rapid.Uint64().Draw(t, "seed")
		for _, chunks := range [][][]byte{{body}, byteByByte(body), randomChunks(rand.New(rand.NewPCG(seed, 1)), body)} {
			compare(t, api, header, body, n, chunks)
		}
	})
}
