package prefix

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// caseRow is one row of testdata/cases/INDEX.tsv: a request body in the shape
// that a real client sends, and what it begins with.
type caseRow struct {
	file, path, text, tenant, model, kind string
	chars                                 int
	head                                  Head
	body                                  []byte
}

func readTSV(t testing.TB, name string) []map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[columns[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func readCases(t testing.TB) map[string]caseRow {
	t.Helper()
	cases := map[string]caseRow{}
	for _, row := range readTSV(t, "INDEX.tsv") {
		body, err := os.ReadFile(filepath.Join("testdata", "cases", "bodies", row["file"]))
		if err != nil {
			t.Fatal(err)
		}
		chars, err := strconv.Atoi(row["prefix_text_chars"])
		if err != nil {
			t.Fatalf("%s: %v", row["file"], err)
		}
		c := caseRow{
			file: row["file"], path: row["api_path"], text: unescapeCell(row["prefix_text_first_120"]),
			tenant: row["tenant"], model: row["model_adapter"], kind: row["kind"], chars: chars, body: body,
		}
		c.head = parseHead(c.path, row["headers"])
		cases[c.file] = c
	}
	return cases
}

// unescapeCell undoes the escapes of a cell.
func unescapeCell(cell string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\a`, "\a").Replace(cell)
}

func parseHead(path, headers string) Head {
	h := Head{Path: path}
	for line := range strings.SplitSeq(headers, "; x-") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "content-type":
			h.ContentType = value
		case "amzn-sagemaker-prefix-aware-id":
			h.TenantHeader = value
		}
	}
	return h
}

// readWhole and the like return the result of a body fed in some chunking, with
// the levels copied, and the text.
func readWhole(h Head, n int, chunks ...[]byte) (Result, string) {
	var s Scanner
	s.Reset(h, Options{PrefixLength: n})
	for _, chunk := range chunks {
		s.Feed(bytes.Clone(chunk))
	}
	r := s.Finish(true)
	return r, s.Text()
}

func byteByByte(body []byte) [][]byte {
	chunks := make([][]byte, len(body))
	for i := range body {
		chunks[i] = body[i : i+1]
	}
	return chunks
}

func randomChunks(rnd *rand.Rand, body []byte) [][]byte {
	var chunks [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+rnd.IntN(1+rnd.IntN(400)))
		chunks = append(chunks, body[:n])
		body = body[n:]
	}
	return chunks
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func TestCases(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range readCases(t) {
		t.Run(c.file, func(t *testing.T) {
			chunkings := [][][]byte{{c.body}, byteByByte(c.body)}
			for range 20 {
				chunkings = append(chunkings, randomChunks(rnd, c.body))
			}
			for _, chunks := range chunkings {
				r, text := readWhole(c.head, 65536, chunks...)
				checkCase(t, c, r, text)
			}
		})
	}
}

func checkCase(t *testing.T, c caseRow, r Result, text string) {
	t.Helper()
	tenant := c.tenant
	if strings.HasPrefix(tenant, "(invalid") {
		tenant = ""
		if !r.Notes.Has(NoteTenantInvalid) {
			t.Errorf("notes %b lack NoteTenantInvalid", r.Notes)
		}
	}
	if r.Tenant != tenant {
		t.Errorf("tenant %q, want %q", r.Tenant, tenant)
	}
	if c.kind == "text-or-opaque" && r.Kind != Text {
		return
	}
	if want := map[string]Kind{"text": Text, "text-or-opaque": Text, "raw-bytes": Raw, "none": None}[c.kind]; r.Kind != want {
		t.Errorf("kind %v, want %v", r.Kind, want)
	}
	model := r.Model
	if r.Adapter != "" {
		model += " + " + r.Adapter
	}
	if model != c.model {
		t.Errorf("model %q, want %q", model, c.model)
	}
	if c.kind == "none" {
		return
	}
	if r.Chars != c.chars {
		t.Errorf("%d characters, want %d", r.Chars, c.chars)
	}
	if got := firstRunes(text, 120); got != c.text {
		t.Errorf("text\n%q, want\n%q", got, c.text)
	}
}

func TestGroups(t *testing.T) {
	cases := readCases(t)
	for _, row := range readTSV(t, "GROUPS.tsv") {
		n, err := strconv.Atoi(row["N"])
		if err != nil {
			t.Fatal(err)
		}
		files := strings.Fields(row["files"])
		keys := map[uint64]bool{}
		for _, file := range files {
			c, ok := cases[file]
			if !ok {
				t.Fatalf("no case %q", file)
			}
			r, _ := readWhole(c.head, n, c.body)
			keys[r.Key] = true
		}
		want := len(files)
		if row["relation"] == "equal" {
			want = 1
		}
		if len(keys) != want {
			t.Errorf("%s at N=%d: %d keys of %v, want %d (%s)", row["relation"], n, len(keys), files, want, row["why"])
		}
	}
}
