package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// The bodies that real clients send, and what is expected of each, are shared
// with the prefix package.
const casesDir = "../../internal/prefix/testdata/cases"

// bodyCase is a row of INDEX.tsv.
type bodyCase struct {
	file, path, text, tenant, model, kind string
	chars                                 int
	headers                               []string // name, value, ...
	body                                  []byte
}

func table(t *testing.T, name string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(casesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	columns := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for i, cell := range strings.Split(line, "\t") {
			row[columns[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func bodyCases(t *testing.T) map[string]bodyCase {
	t.Helper()
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\0`, "\x00", `\a`, "\a")
	cases := make(map[string]bodyCase)
	for _, row := range table(t, "INDEX.tsv") {
		c := bodyCase{
			file: row["file"], path: row["api_path"], text: unescape.Replace(row["prefix_text_first_120"]),
			tenant: row["tenant"], model: row["model_adapter"], kind: row["kind"],
		}
		var err error
		if c.chars, err = strconv.Atoi(row["prefix_text_chars"]); err != nil {
			t.Fatal(err)
		}
		if c.body, err = os.ReadFile(filepath.Join(casesDir, "bodies", c.file)); err != nil {
			t.Fatal(err)
		}
		contentType, tenant, hasTenant := strings.Cut(row["headers"], "; x-amzn-sagemaker-prefix-aware-id: ")
		c.headers = []string{"content-type", strings.TrimPrefix(contentType, "content-type: ")}
		if hasTenant {
			c.headers = append(c.headers, "x-amzn-sagemaker-prefix-aware-id", tenant)
		}
		cases[c.file] = c
	}
	if len(cases) < 70 {
		t.Fatalf("only %d bodies", len(cases))
	}
	return cases
}

// explainCase runs explain as a user would.
func explainCase(t *testing.T, c bodyCase, flags ...string) explanation {
	t.Helper()
	args := append([]string{"explain", "--json", "--show-text", "--path", c.path}, flags...)
	for i := 0; i < len(c.headers); i += 2 {
		args = append(args, "-H", c.headers[i]+": "+c.headers[i+1])
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), append(args, "-"), bytes.NewReader(c.body), &out, &errs); code != 0 {
		t.Fatalf("explain %s: exit %d: %s", c.file, code, errs.String())
	}
	var x explanation
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExplainCases(t *testing.T) {
	for _, c := range bodyCases(t) {
		t.Run(c.file, func(t *testing.T) {
			x := explainCase(t, c, "--prefix-length", "65536", "--endpoints", "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80")
			switch {
			case c.kind == "text-or-opaque" && x.Kind != "text":
				return // either treatment is allowed
			case c.kind == "raw-bytes" && x.Kind != "raw", c.kind == "text" && x.Kind != "text", c.kind == "none" && x.Kind != "none":
				t.Errorf("kind %s, want %s", x.Kind, c.kind)
			}
			checkIdentity(t, c, x)
			if first := []rune(*x.Text); string(first[:min(len(first), 120)]) != c.text || x.TextChars != c.chars {
				t.Errorf("text %q of %d characters, want %q of %d", string(first[:min(len(first), 120)]), x.TextChars, c.text, c.chars)
			}
			if x.Kind == "none" {
				if x.Reason != "no_key" || x.Key != "" || len(x.Homes) != 0 {
					t.Errorf("without text: %+v", x)
				}
			} else if x.Reason != "home" || len(x.Key) != 16 || len(x.Homes) != 3 {
				t.Errorf("with text: %+v", x)
			}
		})
	}
}

// checkIdentity compares tenant, model and adapter.
func checkIdentity(t *testing.T, c bodyCase, x explanation) {
	t.Helper()
	want := c.tenant
	if strings.HasPrefix(want, "(invalid") {
		want = ""
	}
	model := x.Model
	if x.Adapter != "" {
		model += " + " + x.Adapter
	}
	if x.Tenant != want || model != c.model {
		t.Errorf("tenant %q model %q, want %q and %q", x.Tenant, model, want, c.model)
	}
}

func TestExplainGroups(t *testing.T) {
	cases := bodyCases(t)
	for _, g := range table(t, "GROUPS.tsv") {
		files := strings.Fields(g["files"])
		first := explainCase(t, cases[files[0]], "--prefix-length", g["N"]).Key
		for _, file := range files[1:] {
			if same := explainCase(t, cases[file], "--prefix-length", g["N"]).Key == first; same != (g["relation"] == "equal") {
				t.Errorf("%s and %s at %s characters: same key %v, want them %s", files[0], file, g["N"], same, g["relation"])
			}
		}
	}
}

// Every body passes through Envoy unchanged to the endpoint that explain names;
// groups that share a key share a replica.
func TestCasesThroughEnvoy(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	cases := bodyCases(t)
	servedBy := make(map[string]string)
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			r, err := post(t.Context(), s, c.path, c.body, c.headers...)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			address := r.Header.Get("x-replica")
			servedBy[c.file] = address
			if r.StatusCode >= 500 || address == "" {
				t.Fatalf("status %s from %q, not a replica's answer", r.Status, address)
			}
			arrivedWhole(t, s, address, c.body)
			x := explainCase(t, c, "--prefix-length", "1024", "--endpoints", strings.Join(s.Replicas.Addresses(), ","))
			if x.Kind != "none" && address != x.Homes[0] {
				t.Errorf("served by %s, explain names %s", address, x.Homes[0])
			}
		})
	}
	for _, g := range table(t, "GROUPS.tsv") {
		files := strings.Fields(g["files"])
		if g["relation"] != "equal" || g["N"] != "1024" {
			continue // the others need another prefix length, or may share a replica by chance
		}
		for _, file := range files[1:] {
			if servedBy[file] != servedBy[files[0]] {
				t.Errorf("%s went to %s, %s to %s: %s", files[0], servedBy[files[0]], file, servedBy[file], g["why"])
			}
		}
	}
	noMisses(t, s)
	atRest(t, s)
}

// arrivedWhole checks that the last request of a replica had just this body.
func arrivedWhole(t *testing.T, s *stack.Stack, address string, body []byte) {
	t.Helper()
	records := s.Replicas.Replica(address).Requests()
	if len(records) == 0 {
		t.Fatalf("%s has no record of a request", address)
	}
	sum := sha256.Sum256(body)
	last := records[len(records)-1]
	if last.Body.SHA256 != hex.EncodeToString(sum[:]) || last.ContentLength != int64(len(body)) {
		t.Errorf("upstream got %d bytes (content-length %d) of hash %.16s, sent %d of %x",
			last.Body.Length, last.ContentLength, last.Body.SHA256, len(body), sum[:8])
	}
}

// What stands before the messages does not matter, however large it is and
// whatever looks like messages there.
func TestLateMessages(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5, Config: prefixAware(0)})
	messages := string(chat(strings.Repeat("The tools come first. ", 70), "q", false))
	home := homesOf(t, s, "/v1/chat/completions", []byte(messages))[0]
	tool := `{"type":"function","function":{"name":"f","description":"\"messages\":[{\"content\":\"no\"}]","messages":[{"content":"no"}]}},`
	for _, size := range []int{1 << 10, 100 << 10, 2 << 20} {
		for _, name := range []string{"tools", "response_format", "metadata"} {
			body := fmt.Appendf(nil, `{%q:[%s{}],%s`, name, strings.Repeat(tool, size/len(tool)), messages[1:])
			if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != home {
				t.Errorf("%d bytes of %s first: served by %s (%v), home is %s", size, name, got, err, home)
			}
		}
	}
	noMisses(t, s)
	atRest(t, s)
}

// JSON is read in every spelling of its type, and without one; an upload of files
// is not, and passes as it is.
func TestContentTypes(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5, Config: prefixAware(0)})
	body := chat(strings.Repeat("Of which type? ", 100), "q", false)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8; x=y", ""} {
		if got, err := served(t.Context(), s, "/v1/chat/completions", body, "content-type", kind); err != nil || got != home {
			t.Errorf("%q: served by %s (%v), home is %s", kind, got, err, home)
		}
	}
	head := "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
	for _, size := range []int{100, 1 << 20, 20 << 20} {
		upload := append([]byte(head), bytes.Repeat([]byte{0, '{', '"', 0xff}, size/4)...)
		r, err := post(t.Context(), s, "/v1/audio/transcriptions", upload, "content-type", "multipart/form-data; boundary=b", "x-replica-status", "418")
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r)
		arrivedWhole(t, s, r.Header.Get("x-replica"), upload)
	}
	if n := metric(t, s, "warmpath_problems_total", `problem="not_json"`); n != 0 {
		t.Errorf("%v uploads were taken for JSON", n)
	}
	noMisses(t, s)
	atRest(t, s)
}
