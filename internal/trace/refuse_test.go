package trace

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is wrong is refused with its line, value and bound. "SECRET" stands for
// prompt text, which must not be in an error.
func TestRefusals(t *testing.T) {
	const (
		moon    = `{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": [1]}` + "\n"
		azure   = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
		chats   = "request,response,programmer_id,timestamp,model\n"
		session = `{"id":"a","block_size":64,"tool_tokens":0,"system_tokens":0,"requests":[`
	)
	for _, c := range []struct {
		format, data string
		want         string
	}{
		{"mooncake", "", "has no request"},
		{"mooncake", moon + "{SECRET", "line 2: not JSON from byte 1 of 7 on"},
		{"mooncake", moon + `"SECRET"`, "line 2: the line: got a string, want an object"},
		{"mooncake", `{"input_length": 1, "output_length": 1}`, "line 1: no timestamp"},
		{"mooncake", `{"timestamp": 1, "output_length": 1}`, "no input_length"},
		{"mooncake", `{"timestamp": 1, "input_length": 1}`, "no output_length"},
		{"mooncake", `{"timestamp": -5, "input_length": 1, "output_length": 1, "hash_ids": []}`, `timestamp "-5": want a number from 0 to 4611686018427 in units of 1ms`},
		{"mooncake", `{"timestamp": "NaN", "input_length": 1, "output_length": 1}`, `timestamp "NaN": want a number`},
		{"mooncake", `{"timestamp": "Inf", "input_length": 1, "output_length": 1}`, `timestamp "Inf": want`},
		{"mooncake", `{"timestamp": 1e300, "input_length": 1, "output_length": 1}`, `timestamp "1e300": want`},
		{"mooncake", `{"timestamp": [1], "input_length": 1, "output_length": 1}`, "timestamp: got a list, want a number"},
		{"mooncake", `{"timestamp": 1, "input_length": -1, "output_length": 1}`, "input_length -1: want 0 to 16777216"},
		{"mooncake", `{"timestamp": 1, "input_length": 1.5, "output_length": 1}`, "input_length: got the number 1.5, want an integer"},
		{"mooncake", `{"timestamp": 1, "input_length": "SECRET", "output_length": 1}`, "input_length: got a string, want an integer"},
		{"mooncake", `{"timestamp": 1, "input_length": 1, "output_length": 99999999}`, "output of 99999999 tokens: want 0 to 16777216"},
		{"mooncake", `{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": []}`, "0 hash_ids: want 1 to 2 for 513 tokens in blocks of 512; have blocks another size?"},
		{"mooncake", `{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [1,2,3]}`, "3 hash_ids: want 1 to 2"},
		{"mooncake", `{"timestamp": 1, "input_length": 129, "output_length": 1, "hash_ids": [1,2,3,4], "block_size": 64}`, "4 hash_ids: want 2 to 3 for 129 tokens in blocks of 64"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [], "block_size": 0}`, "block_size 0: want 1 to 1048576"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [], "block_size": 2e6}`, "block_size: got the number 2e6, want an integer"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [], "stands_for": 0}`, "stands_for 0: want 1 to 1073741824"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [], "stands_for": 1073741825}`, "stands_for 1073741825: want 1 to"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [], "salt_id": 1}`, "salt_id: got a number, want a string"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [-1]}`, "hash_ids/0: got the number -1, want an integer of 0 or more"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [` + strings.Repeat("9", 99) + `]}`, strings.Repeat("9", 64) + "…, want an integer of 0 or more"},
		{"mooncake", `{"timestamp": 1, "input_length": 9, "output_length": 1, "session_id": "` + strings.Repeat("x", 257) + `"}`, "session of 257 bytes: want at most 256"},

		{"text", `{"timestamp": 1}`, "no input"},
		{"text", `{"timestamp": 1, "input": {"a": "SECRET"}}`, "input: got an object of 15 bytes, want a string or a list of messages"},
		{"text", `{"timestamp": 1, "input": "SECRET", "output": ["SECRET"]}`, "output: got a list, want a string"},
		{"text", `{"timestamp": 1, "input": "SECRET", "output_length": -1}`, "output of -1 tokens"},
		{"text", `{"timestamp": "yesterday", "input": "SECRET"}`, `timestamp "yesterday": want a date like 2006-01-02T15:04:05Z07:00 from 1970 to 2100`},
		{"text", `{"timestamp": "1969-01-01T00:00:00Z", "input": "SECRET"}`, "from 1970 to 2100"},
		{"text", `{"timestamp": null, "input": "SECRET"}`, "timestamp: got null, want a number"},
		{"miniswe", `{"timestamp": "2026-01-01T00:00:00Z", "input": "SECRET"}`, "want a number"},

		{"ragpulse", `{"SECRET": 1}`, "no hash_ids, and no id of a content either"},
		{"ragpulse", `{"passage_id": 1}`, "no token_length"},
		{"ragpulse", `{"passage_id": 1, "token_length": -1}`, "token_length -1: want 0 to 16777216"},
		{"ragpulse", `{"passage_id": 1, "token_length": 1}` + "\n" + `{"history_id": 1, "token_length": 2}`, "line 2: token_length 2 of content 1, which has 1 elsewhere"},
		{"ragpulse", "\n" + `{"timestamp": "1", "output_length": 1, "hash_ids": {"history": [7]}}`, "line 2: hash_ids: no file gives the length of content 7"},
		{"ragpulse", `{"passage_id": 1, "token_length": 16777216}` + "\n" + `{"timestamp": "1", "output_length": 1, "hash_ids": {"history": [1, 1]}}`, "line 2: contents of more than 16777216 tokens"},

		{"weka", `{"block_size": 64}`, "no id"},
		{"weka", `{"id": "a", "block_size": 0}`, "block_size 0: want 1 to 1048576"},
		{"weka", `{"id": "a", "block_size": 64, "hash_id_scope": "galaxy"}`, `hash_id_scope "galaxy": want local`},
		{"weka", session + "]}\n" + session + "]}", `line 2: session "a" comes twice`},
		{"weka", session + "{}]}", "requests/0: no t"},
		{"weka", session + `{"t": 1, "in": 64, "out": 1, "hash_ids": []}]}`, "requests/0: 0 hash_ids: want 1 to 1"},
		{"weka", session + `{"t": 1, "in": 64}]}`, "requests/0: no out"},
		{"weka", session + strings.Repeat(`{"t": 1, "requests": [`, 9) + strings.Repeat("]}", 9) + "]}", "sub-agents nested deeper than 8"},
		{"weka", session + `{"t": 4e9, "requests": [{"t": 4e9}]}]}`, "t of 2222222h13m20s in the session: want at most"},
		{"weka", `{"id": "a", "block_size": 64, "tool_tokens": -1, "requests": []}`, "tool_tokens -1: want"},

		{"azure", "a,b\n", "line 1: a header of 2 columns without TIMESTAMP"},
		{"azure", azure + "2023-11-16 18:17:03.9799600,4808\n", "line 2: not CSV in column 1: wrong number of fields"},
		{"azure", azure + "2023-11-16,4808,10\n", `line 2: TIMESTAMP "2023-11-16": want a date like`},
		{"azure", azure + "2023-11-16 18:17:03.9799600,-1,10\n", `ContextTokens "-1": want an integer from 0 to 16777216`},
		{"azure", azure + "2023-11-16 18:17:03.9799600,1,x\n", `GeneratedTokens "x"`},

		{"copilot", `{"TimeGenerated": "2022-08-08T16:05:28.904Z", "CurrentPrompt": "", "CurrentSuggestion": ""}`, "no UserId"},
		{"copilot", `{"UserId": 1, "TimeGenerated": "SECRE", "CurrentPrompt": "", "CurrentSuggestion": ""}`, `TimeGenerated "SECRE"`},
		{"copilot", `{"UserId": 1, "TimeGenerated": "2022-08-08T16:05:28.904Z", "CurrentPrompt": "SECRET", "CurrentSuggestion": ""}`, "CurrentPrompt: its 6 bytes are not a JSON string"},
		{"copilot", `{"UserId": 1, "TimeGenerated": "2022-08-08T16:05:28.904Z", "CurrentPrompt": ["SECRET"], "CurrentSuggestion": ""}`, "CurrentPrompt: got a list of 10 bytes, want a string"},

		{"realhumaneval", chats + `"['SECRET']",,1,0,m`, "line 2: request: not a Python list of messages at byte 1 of 10: want {"},
		{"realhumaneval", chats + `"[{'role': 'SECRET",,1,0,m`, "a string without an end"},
		{"realhumaneval", chats + `"[{'role': 'SECRET\q'}]",,1,0,m`, "want an escape that repr writes"},
		{"realhumaneval", chats + "[],,1,-1,m", `timestamp "-1"`},
		{"realhumaneval", chats + "\"SECRET\nSECRET", "line 2: not CSV in column 7"},
	} {
		_, err := Read(strings.NewReader(c.data), c.format, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s %.150s:\n got %v\nwant %s", c.format, c.data, err, c.want)
		}
	}
}

// Limits hold, and what is just within them is read.
func TestLimits(t *testing.T) {
	line := `{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}` + "\n"
	data := strings.Repeat(line, 10)
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Bytes: int64(len(data)), LineBytes: len(line), Requests: 10, Chunks: 160}, ""},
		{Limits{Bytes: int64(len(data)) - 1}, "more than the bound of 789 bytes, decompressed"},
		{Limits{LineBytes: len(line) - 1}, "line 1: longer than the bound of 78 bytes"},
		{Limits{Requests: 9}, "line 10: one request more than the bound of 9"},
		{Limits{Chunks: 159}, "line 10: more chunks of 64 tokens than the bound of 159 for the whole trace"},
		{Limits{LineBytes: MaxLineBytes + 1}, "limit of a line, 16777217 bytes: want 1 to 16777216"},
		{Limits{Requests: -1}, "limit of -1 requests"},
		{Limits{Chunks: -1}, "want positive ones"},
	} {
		_, err := Read(bytes.NewReader(zipped([]byte(data))), "mooncake", Options{Limits: c.limits})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.limits, err, c.want)
		}
	}
	for format, data := range map[string]string{
		"text":          `{"timestamp": 1, "input": "` + strings.Repeat("x", 700) + `"}`,
		"ragpulse":      `{"passage_id": 1, "token_length": 200}` + "\n" + `{"timestamp": "1", "output_length": 1, "hash_ids": {"history": [1]}}`,
		"realhumaneval": "request,response,programmer_id,timestamp,model\n\"[{'role': 'user', 'content': '" + strings.Repeat("x", 700) + "'}]\",,1,0,m\n",
	} {
		if _, err := Read(strings.NewReader(data), format, Options{Limits: Limits{Chunks: 1}}); err == nil || !strings.Contains(err.Error(), "more chunks") {
			t.Errorf("%s: got %v, want too many chunks", format, err)
		}
	}
	// A quoted field may go over any number of lines, but not beyond the bound.
	endless := "TIMESTAMP,ContextTokens,GeneratedTokens\n\"" + strings.Repeat("x\n", 200_000)
	if _, err := Read(strings.NewReader(endless), "azure", Options{Limits: Limits{LineBytes: 1000}}); err == nil || !strings.Contains(err.Error(), "longer than the bound of 1000 bytes") {
		t.Errorf("endless field: got %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		format string
		o      Options
		want   string
	}{
		{"mooncake", Options{BlockTokens: MaxBlockTokens + 1}, "block of 1048577 tokens: want 1 to 1048576"},
		{"mooncake", Options{TimeUnit: -1}, "time unit -1ns: want a positive one"},
		{"weka", Options{BlockTokens: 16}, "block of 16 tokens: the format weka has its own"},
		{"miniswe", Options{TimeUnit: time.Second}, "time unit 1s: the format miniswe has its own"},
		{"csv", Options{}, `trace format "csv": want one of azure, copilot, miniswe, mooncake, ragpulse, realhumaneval, text, weka`},
	} {
		if _, err := Read(strings.NewReader(""), c.format, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: got %v, want %s", c.format, c.o, err, c.want)
		}
	}
	data := `{"timestamp": 1.5, "input_length": 100, "output_length": 1, "hash_ids": [1, 2, 3, 4, 5, 6, 7]}
{"timestamp": 3, "input_length": 160, "output_length": 1, "hash_ids": [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]}`
	got, err := Read(strings.NewReader(data), "mooncake", Options{BlockTokens: 16, TimeUnit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	a, b := got.Requests[0], got.Requests[1]
	if b.Arrival != 1500*time.Millisecond || len(a.Chunks) != 1 || len(b.Chunks) != 2 || a.Chunks[0] != b.Chunks[0] || got.BlockTokens != 16 {
		t.Errorf("got %+v", got)
	}
}

func TestTextTimes(t *testing.T) {
	for _, c := range []struct {
		times string
		unit  time.Duration
		want  time.Duration
	}{
		{"[0, 1.25]", 0, 1250 * time.Millisecond},
		{"[1760428436, 1760428437.5]", 0, 1500 * time.Millisecond},
		{"[1760428436000, 1760428436001]", 0, time.Millisecond},
		{"[1760428436442742, 1760428436442743]", 0, time.Microsecond},
		{"[1760428436442742001, 1760428436442742002]", 0, 1},
		{`["5", 6e0]`, 0, time.Second},
		{"[5, 7]", time.Millisecond, 2 * time.Millisecond},
		{`["2026-03-01T10:00:00+02:00", "2026-03-01T08:00:01Z"]`, 0, time.Second},
	} {
		first, second, _ := strings.Cut(strings.Trim(c.times, "[]"), ", ")
		data := `{"timestamp": ` + first + `, "input": "a"}` + "\n" + `{"timestamp": ` + second + `, "input": "b"}`
		got, err := Read(strings.NewReader(data), "text", Options{TimeUnit: c.unit})
		if err != nil || got.Requests[1].Arrival != c.want {
			t.Errorf("%s: %+v, %v; want %v", c.times, got.Requests, err, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(folder, "ragpulse", Options{}); err == nil || !strings.Contains(err.Error(), "no .jsonl, .csv or .gz file in this folder") {
		t.Errorf("empty folder: got %v", err)
	}
	if _, err := Open(filepath.Join(folder, "none"), "ragpulse", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	requests, contents, _ := bytes.Cut(sample(t, "ragpulse"), []byte(`{"sys_prompt_id"`))
	write("0.jsonl.gz", requests) // is none, in spite of its name
	write("1.jsonl", zipped(append([]byte(`{"sys_prompt_id"`), contents...)))
	write("README.md", []byte("no trace"))
	got, err := Open(folder, "ragpulse", Options{})
	if err != nil || len(got.Requests) != 5 || got.Name != filepath.Base(folder) {
		t.Errorf("folder: %d requests of %q, %v", len(got.Requests), got.Name, err)
	}
	write("2.jsonl", []byte("\n{}\n"))
	if _, err := Open(folder, "ragpulse", Options{}); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "2.jsonl")+":2: no hash_ids") {
		t.Errorf("fault in a file: got %v", err)
	}
	write("2.jsonl", zipped(requests)[:40])
	if _, err := Open(folder, "ragpulse", Options{}); err == nil || !strings.Contains(err.Error(), "2.jsonl:1: unexpected EOF") {
		t.Errorf("gzip that is cut off: got %v", err)
	}
}
