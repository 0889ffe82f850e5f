package prefix

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func seeded(seed uint64, s string) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.WriteString(s)
	return d.Sum64()
}

// TestRelations: bodies of one class have one key, classes have different ones.
func TestRelations(t *testing.T) {
	part := func(p string) string { return `{"messages":[{"content":[` + p + `]}]}` }
	long := strings.Repeat("n", MaxName)
	tests := []struct {
		name, path string
		classes    [][]string
	}{
		{"spelling of a message", "/v1/chat/completions", [][]string{
			{
				`{"messages":[{"role":"user","content":"a\nb"}],"model":"m"}`,
				`{"model":"m","messages":[{"content":"a\nb","role":"user"}]}`,
				" {\t\"m\\u006fdel\" : \"\\u006d\" ,\r\n\"mess\\u0061ges\":[ {\"content\" :\"\\u0061\\u000ab\"} ] } ",
				`{"messages":[{"content":[{"type":"text","text":"a\nb"}]}],"model":"m"}`,
				`{"messages":[{"content":[{"text":"a\nb","type":"text"}]}],"model":"m"}`,
				`{"messages":[{"content":["a\nb"]}],"model":"m"}`,
				`{"messages":[{"content":[{"text":"a"},{"text":""},{"text":"b"}]}],"model":"m"}`,
				`{"messages":[{"content":"a"},{"content":null},{"content":""},{"content":[]},{"content":"b"}],"model":"m"}`,
				`{"messages":[{"content":"x","content":[{"text":"x","text":"a\nb"}]}],"model":"x","model":"m"}`,
			},
			{`{"messages":[{"content":"a\nb"}]}`},
			{`{"messages":[{"content":"a\nb"}],"model":"M"}`},
			{`{"messages":[{"content":"a\nb"}],"Model":"m","model":"m2"}`},
			{`{"messages":[{"content":"a\nb"}],"model":"m","cache_salt":"s"}`},
			{`{"messages":[{"content":"a\nb"}],"model":"m","prompt_cache_key":"s"}`},
			{`{"messages":[{"content":"a\nb"}],"model":"m","lora_path":"s"}`, `{"messages":[{"content":"a\nb"}],"model":"m","lora_path":["s","t"]}`},
		}},
		{"spelling of a marker", "/v1/chat/completions", [][]string{
			{
				part(`{"type":"image_url","image_url":{"url":"u/1","detail":"low"}}`),
				part(`{"image_url" : {"detail":"low", "url":"u\/1"}, "type":"image_url"}`),
				part(`{"type":"image_url","cache_control":{"type":"ephemeral"},"image_url":{"url":"\u0075/1","detail":"low"}}`),
				part(`{"type":"text","type":"image_url","image_url":1,"image_url":{"url":"x","url":"u/1","detail":"low"}}`),
			},
			{part(`{"type":"image_url","image_url":{"url":"u/2","detail":"low"}}`)},
			{part(`{"type":"image_url","image_url":{"url":"low","detail":"u/1"}}`)},
			{part(`{"type":"image_url","image_url":["url","u/1","detail","low"]}`)},
			{part(`{"type":"image_url","image_url":[["url","u/1"],"detail","low"]}`)},
			{part(`{"type":"image","image_url":{"url":"u/1","detail":"low"}}`)},
			{part(`{"type":"text","text":"<image_url>"}`)},
			{part(`{"type":"image_url"}`)},
			{part(`{"type":"image_url","image_url":1}`)},
			{part(`{"type":"image_url","image_url":"1"}`)},
			{part(`{"type":"image_url","image_url":null}`)},
		}},
		{"long strings of a marker", "/v1/chat/completions", [][]string{
			{part(`{"type":"x","data":"` + strings.Repeat("d", 5000) + `1"}`)},
			{part(`{"type":"x","data":"` + strings.Repeat("d", 5000) + `2"}`)},
			{
				part(`{"type":"x","text":"` + strings.Repeat("d", textDigestBytes) + `1"}`),
				part(`{"type":"x","text":"` + strings.Repeat("d", textDigestBytes) + `2"}`),
				part(`{"type":"x","text":"\u0064` + strings.Repeat("d", textDigestBytes) + `3"}`),
			},
			{part(`{"type":"x","text":"` + strings.Repeat("d", textDigestBytes-1) + `1"}`)},
		}},
		{"what is not text", "/v1/chat/completions", [][]string{{
			part(`"a"`),
			part(`{"type":"thinking","thinking":"hm","text":"hm"},"a",{"type":"tool_use","input":{"text":"x"}}`),
			part(`{"type":"tool_result","content":[{"type":"text","text":"a"}],"tool_use_id":"7"}`),
			part(`{"content":"a","type":"tool_result"}`),
			part(`{"type":"refusal","refusal":"a"}`),
			part(`1,null,true,["no"],"a"`),
		}}},
		{"names are kept apart beyond the bound", "/v1/completions", [][]string{
			{`{"prompt":"a","model":"` + long + `"}`},
			{`{"prompt":"a","model":"` + long + `x"}`},
			{`{"prompt":"a","model":"` + long + `y"}`},
			{`{"prompt":"a","model":"` + long + `yy"}`},
		}},
		{"images of Ollama", "/api/chat", [][]string{
			{
				`{"messages":[{"content":"a","images":["QUJD"]}]}`, `{"messages":[{"images": ["QUJ\u0044"],"content":"a"}]}`,
				`{"messages":[{"images":["x"],"content":"a","images":["QUJD"]}]}`,
			},
			{`{"messages":[{"content":"a","images":["QUJE"]}]}`},
			{
				`{"messages":[{"content":"a","images":[]}]}`, `{"messages":[{"content":"a","images":null}]}`,
				`{"messages":[{"content":"a"}]}`, `{"messages":[{"content":"a"}],"images":["QUJD"]}`,
			},
		}},
		{"images of Ollama's prompt", "/api/generate", [][]string{
			{`{"prompt":"a","images":["QUJD"]}`, `{"images":["QUJE"],"images":["QUJD"],"prompt":"a"}`},
			{`{"prompt":"a","images":["QUJE"]}`},
			{`{"prompt":"a","images":[]}`, `{"prompt":"a"}`},
		}},
		{"token ids", "/v1/completions", [][]string{
			{`{"prompt":[1,2,3]}`, `{"prompt":[ 1 ,2,` + "\n" + `3]}`, `{"prompt":[[1,2,3],[4]]}`},
			{`{"prompt":[12,3]}`},
			{`{"prompt":[1,2,3,4]}`},
		}},
		{"items of responses", "/v1/responses", [][]string{{
			`{"instructions":"i","input":"a"}`,
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}],"instructions":"i"}`,
			`{"input":[{"output":"x","type":"message","content":"a"},{"type":"reasoning","content":"no"}],"instructions":"i"}`,
			`{"input":[{"content":"x","output":"a","type":"function_call_output"},{"type":"function_call","arguments":"no"}],"instructions":"i"}`,
			`{"input":[{"output":[{"type":"input_text","text":"a"}],"type":"custom_tool_call_output"}],"instructions":"i"}`,
		}}},
		{"billing header", "/v1/messages", [][]string{
			{
				`{"system":"s","messages":[{"content":"a"}]}`,
				`{"messages":[{"content":"a"}],"system":[{"type":"text","text":"x-anthropic-billing-header: 1"},{"type":"text","text":"s"}]}`,
				`{"messages":[{"content":"a"}],"system":["x-anthropic-billing-header: 2","s"]}`,
			},
			{
				`{"system":["s","x-anthropic-billing-header: 1"],"messages":[{"content":"a"}]}`,
				`{"messages":[{"content":"x-anthropic-billing-header: 1"},{"content":"a"}],"system":"s"}`,
			},
			{`{"system":["x-anthropic-billing-header: 1","x-anthropic-billing-header: 1","s"],"messages":[{"content":"a"}]}`},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			owner := map[uint64]string{}
			for i, class := range test.classes {
				for _, body := range class {
					r, _ := readWhole(Head{Path: test.path}, 1024, []byte(body))
					id := fmt.Sprintf("class %d", i)
					if prev, ok := owner[r.Key]; r.Kind != Text || ok && prev != id {
						t.Errorf("%s: kind %v, shares its key with %s", body, r.Kind, prev)
					}
					owner[r.Key] = id
				}
			}
			if len(owner) != len(test.classes) {
				t.Errorf("%d keys of %d classes", len(owner), len(test.classes))
			}
		})
	}
}

// TestEveryOffset splits a body with characters of every width at each byte.
func TestEveryOffset(t *testing.T) {
	c := readCases(t)["chat_raw_utf8.json"]
	want, _ := readWhole(c.head, 1024, c.body)
	for i := range c.body {
		if got, _ := readWhole(c.head, 1024, c.body[:i], c.body[i:]); got.Key != want.Key {
			t.Errorf("split at %d: key %x, want %x", i, got.Key, want.Key)
		}
	}
}

// TestMarkerSize: an image costs its marker's characters however large it is,
// and text in front of it has the key that it has without.
func TestMarkerSize(t *testing.T) {
	system := strings.Repeat("s", LevelChars)
	body := `{"messages":[{"content":"` + system + `"},{"content":[{"type":"image_url","image_url":{"url":"` +
		strings.Repeat("QUJD", 1<<18) + `"}},{"type":"text","text":"what is it?"}]}]}`
	r, text := readWhole(Head{Path: "/v1/chat/completions"}, 4096, []byte(body))
	if want := system + "\n<image_url>\nwhat is it?"; text != want || r.Chars != len(want) {
		t.Errorf("%d characters %q, want %q", r.Chars, text, want)
	}
	plain, _ := readWhole(Head{Path: "/v1/chat/completions"}, 4096, []byte(`{"messages":[{"content":"`+system+`"}]}`))
	if r.Levels[0] != plain.Key {
		t.Error("an image behind the system text changes the level of that")
	}
	for n := range 14 {
		if cut, shown := readWhole(Head{Path: "/v1/chat/completions"}, LevelChars+n, []byte(body)); cut.Chars != LevelChars+n || shown != text[:LevelChars+n] {
			t.Errorf("N=%d: %q", LevelChars+n, shown)
		}
	}
}

// TestCutBody: the text of a body that was cut off begins the text of the
// whole, unless something is missing that belongs in front of it or that says
// that it is no text.
func TestCutBody(t *testing.T) {
	seen, out := 0, regexp.MustCompile("duplicate|billing|reversed|after_messages|image|audio|video")
	for _, c := range readCases(t) {
		if c.kind != "text" || out.MatchString(c.file) {
			continue
		}
		_, whole := readWhole(c.head, 65536, c.body)
		for i := range c.body {
			var s Scanner
			s.Reset(c.head, Options{PrefixLength: 65536})
			s.Feed(c.body[:i])
			r := s.Finish(false)
			if !r.Notes.Has(NoteCut) || r.Kind == Raw && i > 0 && c.body[0] == '{' || r.Kind == Text && !strings.HasPrefix(whole, s.Text()) {
				t.Fatalf("%s cut at %d: %v, notes %b, text %q is no beginning of %q", c.file, i, r.Kind, r.Notes, s.Text(), whole)
			}
			seen++
		}
	}
	if seen < 10_000 {
		t.Errorf("only %d cuts were tried", seen)
	}
}

// TestUnreadIsUnchecked: an error in what is looked at makes a body raw; behind
// the needed text only brackets and quotes matter, as they do in other members.
func TestUnreadIsUnchecked(t *testing.T) {
	text := strings.Repeat("x", 1024)
	for body, want := range map[string]Kind{
		`{"prompt":"` + text + `"}`:               Text,
		`{"prompt":"` + text + `\x","model":"m"}`: Text,
		`{"prompt":"\x` + text + `","model":"m"}`: Raw,
		`{"prompt":"\u00g0` + text + `"}`:         Raw,
		`{"prompt":"` + text + `","x":"\x"}`:      Text,
		`{"prompt":"` + text + `","x":[1 2,{:]}}`: Text,
		`{"prompt":"` + text + `","x" 1}`:         Raw,
		`{"prompt":"` + text + `",}`:              Raw,
		`{"prompt":["a",]}`:                       Text,
		`{"prompt":"` + text + `"]`:               Raw,
		`{"prompt":"` + text + `","x":}`:          Raw,
		`{"prompt":"` + text + `"`:                Raw,
		`{,"prompt":"` + text + `"}`:              Raw,
		"\xEF\xBB{" + `"prompt":"` + text + `"}`:  Raw,
	} {
		for _, chunks := range [][][]byte{{[]byte(body)}, byteByByte([]byte(body))} {
			if r, _ := readWhole(Head{Path: "/v1/completions"}, 1024, chunks...); r.Kind != want || r.Notes.Has(NoteRawFallback) != (want == Raw) {
				t.Errorf("%.20s...%s: %v in %d chunks, notes %b, want %v", body, body[max(0, len(body)-20):], r.Kind, len(chunks), r.Notes, want)
			}
		}
	}
}

// TestFields: tenant, model and adapter, from where they may come.
func TestFields(t *testing.T) {
	tests := []struct {
		name, path, header, members string
		want                        Result
	}{
		{"header first", "/v1/completions", "h", `"prompt_cache_key":"b"`, Result{Tenant: "h", TenantSource: SourceHeader}},
		{"body", "/v1/completions", "", `"prompt_cache_key":"b"`, Result{Tenant: "b", TenantSource: SourcePromptCacheKey}},
		{"bad header", "/v1/completions", " h", `"prompt_cache_key":"b"`, Result{Tenant: "b", TenantSource: SourcePromptCacheKey, Notes: NoteTenantInvalid}},
		{"65 characters", "/v1/completions", strings.Repeat("h", 65), ``, Result{Notes: NoteTenantInvalid}},
		{"control character", "/v1/completions", "", `"prompt_cache_key":"a\u0007"`, Result{Notes: NoteTenantInvalid}},
		{"DEL", "/v1/completions", "", `"prompt_cache_key":"a\u007f"`, Result{Notes: NoteTenantInvalid}},
		{"huge", "/v1/completions", "", `"prompt_cache_key":"` + strings.Repeat("k", 1000) + `"`, Result{Notes: NoteTenantInvalid}},
		{"null", "/v1/completions", "", `"prompt_cache_key":null`, Result{}},
		{"list", "/v1/completions", "", `"prompt_cache_key":["a"]`, Result{Notes: NoteTenantInvalid}},
		{"last wins", "/v1/completions", "", `"prompt_cache_key":7,"prompt_cache_key":""`, Result{}},
		{"true", "/v1/completions", "", `"prompt_cache_key":"a","prompt_cache_key":true`, Result{Notes: NoteTenantInvalid}},
		{"model in path", "/openai/deployments/p/completions", "", ``, Result{Model: "p", ModelSource: SourcePath}},
		{"model in both", "/openai/deployments/p/completions", "", `"model":"b"`, Result{Model: "b", ModelSource: SourceBody}},
		{"model of a wrong type", "/openai/deployments/p/completions", "", `"model":{"model":"b"}`, Result{Model: "p", ModelSource: SourcePath}},
		{"NaN", "/v1/completions", "", `"temperature":NaN,"model":"b"`, Result{Model: "b", ModelSource: SourceBody}},
		{"adapter", "/v1/completions", "", `"lora_path":"l","cache_salt":"s"`, Result{Adapter: "l", CacheSalt: "s"}},
		{"adapter list", "/v1/completions", "", `"lora_path":["l","k"]`, Result{Adapter: "l"}},
		{"adapter null", "/v1/completions", "", `"lora_path":[null,"k"]`, Result{}},
		{"TGI adapter", "/generate", "", `"parameters":{"adapter_id":"a"}`, Result{Adapter: "a"}},
		{"TGI adapter gone", "/generate", "", `"parameters":{"adapter_id":"a"},"parameters":{}`, Result{}},
		{"long path model", "/openai/deployments/" + strings.Repeat("p", 300) + "/completions", "", ``, Result{
			Model: strings.Repeat("p", 239) + fmt.Sprintf("#%016x", xxhash.Sum64String(strings.Repeat("p", 300))), ModelSource: SourcePath, Notes: NoteLongName,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := `{"prompt":"a",` + test.members + `}`
			body = strings.Replace(body, ",}", "}", 1)
			r, _ := readWhole(Head{Path: test.path, TenantHeader: test.header}, 1024, []byte(body))
			if r.Kind != Text {
				t.Fatalf("kind %v", r.Kind)
			}
			got := Result{Tenant: r.Tenant, TenantSource: r.TenantSource, Model: r.Model, ModelSource: r.ModelSource, Adapter: r.Adapter, CacheSalt: r.CacheSalt, Notes: r.Notes}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestReuse: what a scanner read before never shows, also not in strings that a
// former result still holds.
func TestReuse(t *testing.T) {
	var pool Pool
	bodies := []string{
		`{"model":"one","prompt":"first","prompt_cache_key":"k"}`,
		`{"model":"two","prompt":[1,2]}`,
		`{"prompt":"cut off`,
		`{"model":"two","prompt":""}`,
	}
	var results []Result
	for range 3 {
		for _, body := range bodies {
			h := Head{Path: "/v1/completions"}
			want, _ := readWhole(h, 1024, []byte(body))
			s := pool.Get(h, Options{PrefixLength: 1024})
			s.Feed([]byte(body))
			got := s.Finish(true)
			pool.Put(s)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %+v, want %+v", body, got, want)
			}
			results = append(results, got)
		}
	}
	if results[0].Model != "one" || results[0].Tenant != "k" {
		t.Errorf("a later request changed the first result to %+v", results[0])
	}
}
