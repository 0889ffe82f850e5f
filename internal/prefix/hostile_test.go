package prefix

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// hostile are bodies made to be slow: each is head, as many units as fit, tail. The
// first is plain text, which is read to its end as well.
var hostile = []struct {
	name, path, head, unit, tail string
}{
	{"plain", chatPath, inImage, "aaaaaaa ", endImage},
	{"spaces", chatPath, `{`, " \n", `"z":1}`},

	{"bad-utf8", chatPath, inImage, "\xff", endImage},
	{"bad-utf8-mixed", chatPath, inImage, "\xffa", endImage},
	{"bad-utf8-lead", chatPath, inImage, "\xf0\x9f\x98", endImage},
	{"bad-utf8-between", chatPath, inImage, "é\xe5\xba", endImage},
	{"bad-utf8-text", chatPath, inType, `","type":"x","text":"` + strings.Repeat("\xff", 3000), endType},
	{"bad-utf8-name", chatPath, `{"messages":[{"content":[{"`, "\xff", `":1}]}]}`},
	{"bad-utf8-field", chatPath, `{"messages":[],"model":"`, "\xff", `"}`},
	{"bad-utf8-long-names", chatPath, inParts, "{\"" + strings.Repeat("\xff", 40) + "\":0},", endParts},
	{"utf8-2", chatPath, inImage, "é", endImage},

	{"short-escapes", chatPath, inImage, `\n`, endImage},
	{"short-escapes-bad", chatPath, inImage, `\n` + "\xff", endImage},
	{"u-escapes", chatPath, inImage, `\u00e9`, endImage},
	{"u-surrogates", chatPath, inImage, `\ud800`, endImage},
	{"u-pairs", chatPath, inImage, `\ud83d\ude00`, endImage},
	{"u-mixed", chatPath, inImage, `\u0000a`, endImage},
	{"u-broken-pairs", chatPath, inImage, `\ud83da`, endImage},
	{"u-name", chatPath, inObject, `"\u0061":1,`, endObject},
	{"u-carry", chatPath, inImage, "\xe2" + `\u0000`, endImage},

	{"hashed-numbers", chatPath, inArray, `1,`, endArray},
	{"hashed-strings", chatPath, inArray, `"",`, endArray},
	{"hashed-arrays", chatPath, inArray, `[],`, endArray},
	{"hashed-objects", chatPath, inArray, `{},`, endArray},
	{"hashed-escapes", chatPath, inArray, `"
",`, endArray},
	{"hashed-bad-utf8", chatPath, inArray, "\"\xff\",", endArray},
	{"hashed-lists", chatPath, inArray, `[0],`, endArray},
	{"hashed-nested", chatPath, inArray, `[[[[]]]],`, endArray},
	{"hashed-nested-objects", chatPath, inArray, `{"":{"":{}}},`, endArray},
	{"hashed-spaces", chatPath, inArray, " \n1 \n, \t", endArray},
	{"hashed-members", chatPath, inArray, `{"":0},`, endArray},
	{"hashed-deep", chatPath, inArray + strings.Repeat("[", MaxDepth-6), `[],`, "1" + strings.Repeat("]", MaxDepth-6) + endArray[1:]},
	{"hashed-deep-objects", chatPath, inArray + strings.Repeat("[", MaxDepth-6), `{"":0},`, "1" + strings.Repeat("]", MaxDepth-6) + endArray[1:]},
	{
		"dropped-deep", chatPath, inArray + strings.Repeat("[", MaxDepth-7) + "{", `"cache_control":[],"cache_control":[0],`,
		`"":1}` + strings.Repeat("]", MaxDepth-7) + `]}]}]}`,
	},
	{"many-members", chatPath, inObject, counted, endObject},
	{"same-members", chatPath, inObject, `"":0,`, endObject},
	{"last-member", chatPath, inObject + thirty, `"z":0,`, endObject},
	{"dropped-members", chatPath, inObject, `"cache_control":0,`, endObject},

	{"empty-parts", chatPath, inParts, `{},`, endParts},
	{"untyped-parts", chatPath, `{`, `"messages":[{"content":[` + strings.Repeat(`{"b":0},`, 2000) + "0]}],", `"z":1}`},
	{"silent-parts", chatPath, inParts, `{"type":"thinking"},`, endParts},
	{"text-parts", chatPath, inParts, `{"text":""},`, endParts},
	{"result-parts", chatPath, inParts, `{"toolResult":{}},`, endParts},
	{"nested-parts", chatPath, inParts, `{"content":[{"content":[{}]}]},`, endParts},
	{"empty-texts", chatPath, inParts, `"",`, endParts},
	{"null-parts", chatPath, inParts, `0,`, endParts},
	{"array-parts", chatPath, inParts, `[],`, endParts},
	{"marked-lists", chatPath, inParts, `{"type":"tool_use","content":[[0],0,"a",[[]],{}]},`, `{"type":"x","content":[[0],0,"a",[[]],{}]}]}]}`},
	{"duplicate-types", chatPath, inType, `","type":"`, endType},
	{"duplicate-texts", chatPath, inType, `","text":"`, endType},
	{"moved-candidates", chatPath, inType, `","content":"` + strings.Repeat("a", 4000) + `","text":"`, endType},

	{"empty-messages", chatPath, inMessages, `{},`, endMessages},
	{"empty-contents", chatPath, inMessages, `{"content":""},`, endMessages},
	{"listed-contents", chatPath, inMessages, `{"content":[{}]},`, endMessages},
	{"null-messages", chatPath, inMessages, `0,`, endMessages},
	{"array-messages", chatPath, inMessages, `[],`, endMessages},
	{"string-messages", chatPath, inMessages, `"",`, endMessages},
	{"items", "/v1/responses", `{"input":[`, `{},`, `{}]}`},
	{"typed-items", "/v1/responses", `{"input":[`, `{"type":"message","content":[]},`, `{}]}`},
	{"duplicate-messages", chatPath, `{`, `"messages":[{"content":"a"}],`, `"z":1}`},
	{"duplicate-sources", "/embed", `{`, `"messages":0,`, `"z":1}`},
	{"tokens-null", "/v1/completions", `{"prompt":[1,`, `n,`, `1]}`},
	{"tokens", "/v1/completions", `{`, `"prompt":[1` + strings.Repeat(",1", 8000) + "],", `"z":1}`},
	{"short-texts", chatPath, `{`, `"messages":[{"content":[` + strings.Repeat(`"a",`, 4000) + "0]}],", `"z":1}`},
	{"short-parts", chatPath, `{`, `"messages":[{"content":[` + strings.Repeat(`{"text":"a"},`, 1200) + "0]}],", `"z":1}`},
	{"images", "/api/chat", `{"messages":[{`, `"images":[0],`, `"z":1}]}`},

	{"root-members", "/generate", `{`, `"":0,`, `"z":1}`},
	{"root-names", "/embed", `{`, `"q":"",`, `"z":1}`},
	{"root-fields", chatPath, `{"messages":[],`, `"model":"",`, `"z":1}`},
	{"root-adapters", "/generate", `{`, `"parameters":{"adapter_id":""},`, `"z":1}`},
	{"root-lists", chatPath, `{`, `"lora_path":[0],`, `"z":1}`},
	{"root-skipped", chatPath, `{`, `"":[],`, `"z":1}`},

	{"skipped-slashes", chatPath, inSkipped, `\`, endSkipped},
	{"skipped-escaped-quotes", chatPath, inSkipped, `"\"",`, endSkipped},
	{"skipped-quotes", chatPath, inSkipped, `"",`, endSkipped},
	{"skipped-brackets", chatPath, inSkipped, `[],`, endSkipped},
	{"skipped-lists", chatPath, inParts, `[0],`, endParts},
	{"skipped-string-lists", chatPath, inMessages, `["\""],`, endMessages},
	{"skipped-objects", chatPath, `{`, `"":{"":0},`, `"z":1}`},
	{"skipped-slashed-lists", chatPath, inSkipped, `"\` + "`+strings.Repeat(`a`,55)+`" + `",`, endSkipped},
	{"skipped-deep", chatPath, inSkipped, `[[[[[[[[{{{{{{{{}}}}}}}}]]]]]]]],`, endSkipped},
	{"skipped-slash-quotes", chatPath, `{"x":"`, `\"`, `"}`},
	{"skipped-slash-slash-quotes", chatPath, `{"x":"`, `\\\"`, `"}`},
	{"skipped-container-slash-quotes", chatPath, `{"x":["`, `\"`, `"]}`},
	{"skipped-strings", chatPath, inSkipped, `"aaaaaaaaaaaaaaaaaaaaaaa\\aaaaaa",`, endSkipped},
}

const (
	chatPath = "/v1/chat/completions"

	inMessages, endMessages = `{"messages":[`, `0]}`
	inParts, endParts       = `{"messages":[{"content":[`, `0]}]}`
	inType, endType         = `{"messages":[{"content":[{"type":"`, `"}]}]}`
	inImage, endImage       = `{"messages":[{"content":[{"type":"image","x":"`, `"}]}]}`
	inArray, endArray       = `{"messages":[{"content":[{"type":"image","x":[`, `0]}]}]}`
	inObject, endObject     = `{"messages":[{"content":[{"type":"image","x":{`, `"z":1}}]}]}`
	inSkipped, endSkipped   = `{"x":[`, `0]}`
	thirty                  = `"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,` +
		`"A":0,"B":0,"C":0,"D":0,"E":0,"F":0,"G":0,"H":0,"I":0,"J":0,"K":0,`
	// counted stands for members that are all different.
	counted = "counted"
)

// hostileBody has about size bytes.
func hostileBody(head, unit, tail string, size int) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for i := 0; b.Len()+len(tail) < size; i++ {
		if unit == counted {
			fmt.Fprintf(&b, `"%x":1,`, i)
			continue
		}
		b.WriteString(unit)
	}
	b.WriteString(tail)
	return b.Bytes()
}

// TestHostileChunks: whole, where what is simple is read in runs, they give what
// they give byte by byte, where nothing is, and what the twin reads.
func TestHostileChunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, h := range hostile {
		body := hostileBody(h.head, h.unit, h.tail, 2000)
		api, _ := Classify(h.path)
		for _, n := range []int{100, 65536} {
			for _, cut := range []int{len(body), len(body) - 1 - rnd.IntN(len(body)/2)} {
				body := body[:cut]
				want := describe(api, n, cut == len(body), byteByByte(body))
				for _, chunks := range [][][]byte{{body}, randomChunks(rnd, body)} {
					if got := describe(api, n, cut == len(body), chunks); got != want {
						t.Errorf("%s: in %d chunks\n%.300s, byte by byte\n%.300s", h.name, len(chunks), got, want)
					}
				}
			}
			if _, err := parseTree(body); err == nil {
				compare(t, api, "", body, n, [][]byte{body})
			}
		}
	}
}

// BenchmarkHostile measures the bodies that are made to be slow, at the length
// that is read by default.
func BenchmarkHostile(b *testing.B) {
	for _, h := range hostile {
		b.Run(h.name, func(b *testing.B) {
			body := hostileBody(h.head, h.unit, h.tail, 4<<20)
			var s Scanner
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				s.Reset(Head{Path: h.path}, Options{PrefixLength: 65536})
				s.Feed(body)
				s.Finish(true)
			}
		})
	}
}
