package prefix

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// dense writes random JSON without white space, most of it tiny: what is read in
// runs when a body comes whole, and never byte by byte.
type dense struct {
	*rand.Rand
	strings.Builder
}

func (d *dense) of(list ...string) string { return list[d.IntN(len(list))] }

func (d *dense) name() string {
	if d.IntN(20) == 0 {
		return strings.Repeat(d.of("n", "\xff", "é", `\ud800`, "é\xe2"), 10+d.IntN(60))
	}
	return d.of("messages", "content", "content", "text", "type", "refusal", "toolResult", "parts", "images", "model", "prompt", "input",
		"output", "cache_control", "prompt_cache_key", "lora_path", "parameters", "adapter_id", "system", "", "a", "b", `\u0061`)
}

func (d *dense) text() string {
	if d.IntN(20) > 0 {
		return d.of("", "", "a", "bc", "text", "image", "tool_result", "message", "é", "\xff", "\xe2\x82", `\n`, `\"`, `\ud800`, `\ud83d\ude00`, `\u0062`, `a\ud800`)
	}
	unit, n := d.of("a", "é", "\xff", "\xe2\x82", `\n`, `\ud800`, `\ud83d\ude00`, `\u00e9a`, `\\`, `\"`), 1<<d.IntN(12)
	return d.of("", "b", billingHeader) + strings.Repeat(unit, n) + d.of("", `\ud800`, "\xe2", "c")
}

func (d *dense) value(depth int) {
	switch kind := d.IntN(12); {
	case kind < 3:
		d.WriteString(`"` + d.text() + `"`)
	case kind < 6 || depth == 0:
		d.WriteString(d.of("0", "1", "-2.5", "null", "n", "[]", "{}", `""`, "128000", "[0]", "[[]]", `{"":0}`))
	case kind < 9:
		d.list("[", "]", func() { d.value(depth - 1) })
	case kind == 9 && d.IntN(4) == 0:
		n, open := MaxDepth-12+d.IntN(14), d.of("[", `{"content":`, `{"a":`)
		d.WriteString(strings.Repeat(open, n))
		d.value(2)
		d.WriteString(strings.Repeat(string(closing(open[0])), n))
	default:
		d.list("{", "}", func() {
			d.WriteString(`"` + d.name() + `":`)
			d.value(depth - 1)
		})
	}
}

func (d *dense) list(open, shut string, element func()) {
	n := d.IntN(5)
	if d.IntN(10) == 0 {
		n = d.IntN(60)
	}
	d.WriteString(open)
	for i := range n {
		if i > 0 {
			d.WriteString(",")
		}
		element()
	}
	d.WriteString(shut)
}

// body writes a value where it means something, and sometimes spoils it.
func (d *dense) body() []byte {
	d.Reset()
	head := d.of(`{"a":`, `{"prompt":`, `{"input":`, `{"lora_path":`, `{"prompt_cache_key":`, `{"messages":`, `{"messages":[`, `{"messages":[{"content":`,
		`{"messages":[{"content":[`, `{"messages":[{"content":[{"a":`, `{"messages":[{"content":[{"type":"image","a":[`, `{"prompt":[1,`)
	d.WriteString(head)
	for range d.IntN(4) {
		d.value(4)
		d.WriteString(",")
	}
	d.value(4)
	for i := len(head) - 1; i >= 0; i-- {
		if isOpening(head[i]) {
			d.WriteByte(closing(head[i]))
		}
	}
	body := []byte(d.String())
	if d.IntN(3) == 0 {
		body[d.IntN(len(body))] = d.of(",", ":", `"`, `\`, "[", "]", "{", "}", "0", " ", "\xff")[0]
	}
	return body
}

// TestRunsAgreeWithBytes: what is read in runs means what it means byte by byte,
// and what the twin reads, if it is JSON.
func TestRunsAgreeWithBytes(t *testing.T) {
	d := dense{Rand: rand.New(rand.NewPCG(9, 10))}
	for range 3000 {
		body := d.body()
		if len(body) > 20_000 {
			continue
		}
		api := []API{Chat, Chat, Chat, Completions, Responses, Messages, Generate, OllamaChat, Gemini}[d.IntN(9)]
		n, complete := 1+d.IntN(1<<d.IntN(11)), d.IntN(4) > 0
		want := describe(api, n, complete, byteByByte(body))
		for _, chunks := range [][][]byte{{body}, randomChunks(d.Rand, body)} {
			if got := describe(api, n, complete, chunks); got != want {
				t.Fatalf("%v N=%d complete=%v %q: in %d chunks\n%.300s, byte by byte\n%.300s", api, n, complete, body, len(chunks), got, want)
			}
		}
		if _, err := parseTree(body); err == nil {
			compare(t, api, "", body, n, [][]byte{body})
		}
	}
}

// TestRunsFindErrors: what is wrong is wrong in a run, too, and what is not
// looked at is not.
func TestRunsFindErrors(t *testing.T) {
	full := `{"messages":[{"content":["` + strings.Repeat("a", 60) + `",`
	for body, want := range map[string]Kind{
		`{"messages":[{"content":[{"type":"x","a":[0,0]}]}]}`:           Text,
		`{"messages":[{"content":[{"type":"x","a":[0,0}]}]}]}`:          Raw,
		`{"messages":[{"content":[{"type":"x","a":[0,0,]}]}]}`:          Raw,
		`{"messages":[{"content":[{"type":"x","a":[,0]}]}]}`:            Raw,
		`{"messages":[{"content":[{"type":"x","a":[0 0]}]}]}`:           Raw,
		`{"messages":[{"content":[{"type":"x","a":{"b":0,"c":0}}]}]}`:   Text,
		`{"messages":[{"content":[{"type":"x","a":{"b":0,"c":0]}]}]}`:   Raw,
		`{"messages":[{"content":[{"type":"x","a":{"b":0,}}]}]}`:        Raw,
		`{"messages":[{"content":[{"type":"x","a":{"b":0,0}}]}]}`:       Raw,
		`{"messages":[{"content":[{"type":"x","a":["\ud800","\x"]}]}]}`: Raw,
		`{"messages":[{"content":["a",]}]}`:                             Raw,
		`{"messages":[{"content":["a","b"}]}`:                           Raw,
		`{"messages":[{"content":"a"},0,]}`:                             Raw,
		`{"messages":[{"content":"a"},0,{}]}`:                           Text,
		`{"prompt":[1,2,]}`:                                             Raw,
		`{"prompt":[1,2}`:                                               Raw,
		full + `"b","c"]}]}`:                                            Text,
		full + `"b" "c"]}]}`:                                            Text,
		full + `"b",]}]}`:                                               Text,
	} {
		path := "/v1/chat/completions"
		if strings.HasPrefix(body, `{"prompt"`) {
			path = "/v1/completions"
		}
		for _, chunks := range [][][]byte{{[]byte(body)}, byteByByte([]byte(body))} {
			if r, _ := readWhole(Head{Path: path}, 10, chunks...); r.Kind != want {
				t.Errorf("%s in %d chunks: %v, want %v", body, len(chunks), r.Kind, want)
			}
		}
	}
}

// TestCutInCharacter: a character that the cut went through is not there.
func TestCutInCharacter(t *testing.T) {
	for _, body := range []string{"a\xe2\x82", "a\xf0\x9f\x98", `a\ud83d`, `a\ud83d\`, `a\ud83d\ud`, `a\`, `a\u00e`} {
		body = `{"prompt":"` + body
		for _, chunks := range [][][]byte{{[]byte(body)}, byteByByte([]byte(body))} {
			var s Scanner
			s.Reset(Head{Path: "/v1/completions"}, Options{})
			for _, chunk := range chunks {
				s.Feed(chunk)
			}
			if r := s.Finish(false); r.Kind != Text || s.Text() != "a" {
				t.Errorf("%q in %d chunks: %v %q, want text \"a\"", body, len(chunks), r.Kind, s.Text())
			}
		}
	}
}
