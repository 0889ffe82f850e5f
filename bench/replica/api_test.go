package replica_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/bench/replica"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata")

var apis = map[string]struct{ path, body string }{
	"chat":       {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":2,"stream":STREAM,"stream_options":{"include_usage":true}}`},
	"chat_stop":  {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"u"}}]}],"tools":[{}],"stream":STREAM}`},
	"completion": {"/v1/completions", `{"model":"m","prompt":["hello","you"],"max_tokens":2,"stream":STREAM,"stream_options":{"include_usage":true}}`},
	"responses":  {"/v1/responses", `{"model":"m","instructions":"be kind","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]}],"max_output_tokens":2,"stream":STREAM}`},
	"messages":   {"/v1/messages", `{"model":"m","system":"be kind","messages":[{"role":"user","content":"hello"}],"max_tokens":2,"stream":STREAM}`},
	"invocation": {"/endpoints/e/invocations", `{"inputs":"hello","parameters":{"max_new_tokens":2},"stream":STREAM}`},
	"embedding":  {"/v1/embeddings", `{"model":"m","input":["hello","you"],"stream":STREAM}`},
}

// TestAPIGolden pins every API's answers. Rewrite with
// go test ./bench/replica -run APIGolden -rewrite, and read the difference.
func TestAPIGolden(t *testing.T) {
	created := regexp.MustCompile(`("created(?:_at)?":)\d+`)
	for name, api := range apis {
		t.Run(name, func(t *testing.T) {
			f := start(t, 1, replica.Params{TimeScale: 1000, OutputTokens: 3})
			c := client(t, http1)
			var got bytes.Buffer
			for _, stream := range []string{"false", "true"} {
				resp, body := post(t, c, "http://"+f.Addresses()[0]+api.path, strings.Replace(api.body, "STREAM", stream, 1))
				fmt.Fprintf(&got, "stream %s: %d %s\n%s\n", stream, resp.StatusCode, resp.Header.Get("content-type"),
					created.ReplaceAllString(body, "${1}0"))
			}
			golden(t, filepath.Join("testdata", name+".golden"), got.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s\n got:\n%s\nwant:\n%s", file, got, want)
	}
}

func TestErrors(t *testing.T) {
	f := start(t, 1, replica.Params{TimeScale: 1000, Models: []string{"m"}})
	c := client(t, http1)
	for name, tc := range map[string]struct {
		path, body string
		headers    []string
		status     int
		message    string
	}{
		"not JSON":           {"/v1/chat/completions", `{"secret words`, nil, 400, "not JSON"},
		"wrong type":         {"/v1/chat/completions", `{"model":1}`, nil, 400, "field model: want string"},
		"no messages":        {"/v1/chat/completions", `{"model":"m"}`, nil, 400, "field messages: required"},
		"no prompt":          {"/v1/completions", `{"model":"m"}`, nil, 400, "field prompt: required"},
		"no input":           {"/v1/responses", `{"model":"m"}`, nil, 400, "field input: required"},
		"no Claude messages": {"/v1/messages", `{"model":"m"}`, nil, 400, "field messages: required"},
		"no inputs":          {"/invocations", `{"model":"m"}`, nil, 400, "required"},
		"invocation no JSON": {"/invocations", `secret words`, nil, 400, "not JSON"},
		"unknown model":      {"/v1/completions", `{"model":"other","prompt":"p"}`, nil, 404, "The model `other` does not exist."},
		"unknown path":       {"/v2/chat", `{}`, nil, 404, "no such path"},
		"asked for":          {"/v1/completions", `{"model":"m","prompt":"p"}`, []string{"x-replica-status", "503"}, 503, "x-replica-status"},
		"bad status":         {"/v1/completions", `{}`, []string{"x-replica-status", "200"}, 400, "want a number from 400 to 599"},
		"bad delay":          {"/v1/completions", `{}`, []string{"x-replica-delay-ms", "-1"}, 400, "x-replica-delay-ms"},
		"bad reset":          {"/v1/completions", `{}`, []string{"x-replica-reset", "now"}, 400, "want before or mid"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := post(t, c, "http://"+f.Addresses()[0]+tc.path, tc.body, tc.headers...)
			var e struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if resp.StatusCode != tc.status || e.Error.Code != tc.status || e.Error.Type == "" || !strings.Contains(e.Error.Message, tc.message) {
				t.Errorf("status %d, error %+v, want %d with %q", resp.StatusCode, e.Error, tc.status, tc.message)
			}
			if strings.Contains(body, "secret") {
				t.Errorf("error repeats the prompt: %s", body)
			}
			if resp.Header.Get("x-replica") != f.Addresses()[0] {
				t.Errorf("x-replica %q", resp.Header.Get("x-replica"))
			}
		})
	}
	if s := f.Stats()[0]; s.Aborted != 0 || s.PromptTokens != 0 {
		t.Errorf("errors counted as %+v", s)
	}
}

func TestInvocationTakesEveryBody(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	for _, tc := range []struct{ contentType, body, want string }{
		{"application/json", `{"messages":[{"role":"user","content":"x"}]}`, `"chat.completion"`},
		{"application/json", `{"prompt":"x"}`, `"text_completion"`},
		{"application/json", `{"input":"x"}`, `"response"`},
		{"application/json", `{"inputs":"x"}`, `"generated_text"`},
		{"text/plain", `x`, `"generated_text"`},
		{"application/octet-stream", "\x00\xff", `"generated_text"`},
	} {
		_, body := post(t, c, "http://"+f.Addresses()[0]+"/invocations", tc.body, "content-type", tc.contentType)
		if !strings.Contains(body, tc.want) {
			t.Errorf("%s %q: %s, want %s", tc.contentType, tc.body, body, tc.want)
		}
	}
}

func TestResets(t *testing.T) {
	for protocolName, protocol := range map[string]func(*http.Protocols){"http1": http1, "h2c": h2c} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", protocolName, stream), func(t *testing.T) {
				f := start(t, 1, fast)
				c := client(t, protocol)
				url := "http://" + f.Addresses()[0] + "/v1/chat/completions"
				if _, err := send(t.Context(), c, url, chatBody("x", stream), "x-replica-reset", "before"); err == nil {
					t.Error("before: a response came")
				}
				resp, err := send(t.Context(), c, url, chatBody("x", stream), "x-replica-reset", "mid", "x-replica-tokens", "10")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err == nil || len(body) == 0 || resp.StatusCode != http.StatusOK {
					t.Errorf("mid: status %d, %d bytes, error %v, want 200, some and an error", resp.StatusCode, len(body), err)
				}
				if got := strings.Count(string(body), `"content":" `); stream && got != 5 {
					t.Errorf("mid: %d content chunks, want 5", got)
				}
				eventually(t, "no request outstanding", func() bool { s := f.Stats()[0]; return s.Outstanding == 0 && s.Finished == s.Started })
			})
		}
	}
}

func TestStreamChunksAreAsManyAsAsked(t *testing.T) {
	f := start(t, 1, fast)
	_, body := post(t, client(t, h2c), "http://"+f.Addresses()[0]+"/v1/chat/completions", chatBody("x", true),
		"x-replica-tokens", "7", "x-replica-token-ms", "0")
	all := events(t, body)
	content := slices.DeleteFunc(slices.Clone(all), func(e string) bool { return !strings.Contains(e, `"content":" `) })
	if len(content) != 7 || all[len(all)-1] != "[DONE]" {
		t.Errorf("%d content chunks of %q", len(content), all)
	}
}

func TestConversationHitsItsOwnAnswers(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	url := "http://" + f.Addresses()[0] + "/v1/chat/completions"
	messages := []map[string]string{{"role": "user", "content": strings.Repeat("question ", 40)}}
	for turn := range 3 {
		body, _ := json.Marshal(map[string]any{"model": "m", "messages": messages, "max_tokens": 50})
		_, answer := post(t, c, url, string(body))
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				PromptTokens        int `json:"prompt_tokens"`
				PromptTokensDetails struct {
					CachedTokens int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal([]byte(answer), &r); err != nil {
			t.Fatal(err)
		}
		// All but what the user has added and a part of a block is known.
		fresh := r.Usage.PromptTokens - r.Usage.PromptTokensDetails.CachedTokens
		if turn > 0 && fresh > 16+20 {
			t.Errorf("turn %d: %d of %d tokens prefilled", turn, fresh, r.Usage.PromptTokens)
		}
		messages = append(messages, map[string]string{"role": "assistant", "content": r.Choices[0].Message.Content},
			map[string]string{"role": "user", "content": "and then what happens next?"})
	}
}

func TestStatsSayWhatWasReceived(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	url := "http://" + f.Addresses()[0]
	body := chatBody("x", false)
	post(t, c, url+"/v1/chat/completions", body, "x-request-id", "id-1", "x-test", "1")
	chunked := io.MultiReader(strings.NewReader(body[:10]), strings.NewReader(body[10:]))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", chunked)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	sum := sha256.Sum256([]byte(body))
	want := replica.Body{SHA256: hex.EncodeToString(sum[:]), Length: int64(len(body))}
	records := f.Replicas()[0].Requests()
	if len(records) != 2 {
		t.Fatalf("%d records", len(records))
	}
	if r := records[0]; r.Body != want || r.RequestID != "id-1" || r.ContentLength != int64(len(body)) ||
		r.TransferEncoding != nil || !slices.Contains(r.HeaderNames, "x-test") || !slices.IsSorted(r.HeaderNames) {
		t.Errorf("first record %+v", r)
	}
	if r := records[1]; r.Body != want || r.ContentLength != -1 || !slices.Equal(r.TransferEncoding, []string{"chunked"}) {
		t.Errorf("chunked record %+v", r)
	}
	eventually(t, "finished", func() bool { return f.Stats()[0].Finished == 2 })
	var s replica.Stats
	get(t, c, url+"/stats", &s)
	if s != f.Stats()[0] || s.LastBody != want || s.Started != 2 || s.HitRate == 0 && s.CachedTokens != 0 {
		t.Errorf("GET /stats %+v, Stats %+v", s, f.Stats()[0])
	}
	var fleet []replica.Stats
	get(t, c, url+"/fleet/stats", &fleet)
	if len(fleet) != 1 || fleet[0] != s {
		t.Errorf("GET /fleet/stats %+v", fleet)
	}
	post(t, c, url+"/stats/reset", "")
	get(t, c, url+"/stats", &s)
	if s != (replica.Stats{Replica: f.Addresses()[0]}) {
		t.Errorf("after reset %+v", s)
	}
}

func TestUnreadableBodyIsRecorded(t *testing.T) {
	f := start(t, 1, fast)
	pr, pw := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+f.Addresses()[0]+"/v1/completions", pr)
	go func() {
		_, _ = pw.Write([]byte("{"))
		pw.CloseWithError(errors.New("gone"))
	}()
	if resp, err := client(t, http1).Do(req); err == nil {
		resp.Body.Close()
		t.Error("a broken upload got an answer")
	}
	eventually(t, "recorded", func() bool {
		r := f.Replicas()[0].Requests()
		return len(r) == 1 && r[0].BodyError != "" && r[0].Body.Length == 1 && f.Stats()[0].Aborted == 1
	})
}

func TestRequestLogIsBounded(t *testing.T) {
	f := start(t, 1, fast)
	r := f.Replicas()[0]
	for i := range replica.RequestLog + 5 {
		req, _ := http.NewRequest(http.MethodPost, "/none", strings.NewReader(""))
		req.Header.Set("x-request-id", fmt.Sprint(i))
		r.ServeHTTP(discard{http.Header{}}, req)
	}
	log := r.Requests()
	if len(log) != replica.RequestLog || log[0].RequestID != "5" || log[len(log)-1].RequestID != fmt.Sprint(replica.RequestLog+4) {
		t.Errorf("%d records from %s to %s", len(log), log[0].RequestID, log[len(log)-1].RequestID)
	}
}

// discard is a response nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func TestModelsAndHealth(t *testing.T) {
	f := start(t, 1, replica.Params{Models: []string{"base", "adapter"}})
	c := client(t, http1)
	var list struct{ Data []struct{ ID string } }
	get(t, c, "http://"+f.Addresses()[0]+"/v1/models", &list)
	if len(list.Data) != 2 || list.Data[1].ID != "adapter" {
		t.Errorf("models %+v", list)
	}
	resp, err := c.Get("http://" + f.Addresses()[0] + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health: %d", resp.StatusCode)
	}
}

func get(t *testing.T, c *http.Client, url string, v any) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
}
