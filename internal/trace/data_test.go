package trace

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const dataFolder = "../../bench/data"

// published has each trace of bench/data with what was found in it by other
// means, before this package was written: the requests, the ideal hit rate in
// percent (0: not known) for blocks of so many tokens, the median and the 90th
// percentile of the input (a little off where its length was defined another way).
var published = []struct {
	file, format string
	requests     int
	block        int
	ideal        float64
	p50, p90     int
	tolerance    float64 // relative, of p50 and p90
}{
	{"mooncake_conversation.jsonl.gz", "mooncake", 12_031, 512, 37.4, 6_909, 27_367, 0},
	{"ragpulse", "ragpulse", 7_106, 512, 31.5, 3_131, 3_952, 0},
	// The other count has whole blocks only.
	{"weka_claude_code_63sessions_2h.jsonl.gz", "weka", 3_150, 64, 95.7, 99_904, 195_968, 64.0 / 99_904},
	// The other count rounds tokens down.
	{"lmcache_miniswe.jsonl.gz", "miniswe", 402, 16, 93.6, 3_807, 12_312, 1.0 / 3_807},
	// The other count has the text of a chat template.
	{"realhumaneval_chat.csv.gz", "realhumaneval", 1_055, 16, 60.2, 292, 1_367, 0.04},
	// The other count has the prompts with their escapes; 49 of 1,150 are empty.
	{"copilot_completion.jsonl.gz", "copilot", 1_150 - 49, 16, 89.4, 190, 431, 0.04},
	{"azure_2023_code.csv.gz", "azure", 8_819, 0, 0, 1_469, 5_194, 0},
	{"azure_2023_conv.csv.gz", "azure", 19_366, 0, 0, 1_020, 2_735, 0},
}

// TestPublishedTraces reads the whole traces and compares them with what is
// known of them, and with the table in bench/data/README.md.
func TestPublishedTraces(t *testing.T) {
	page, err := os.ReadFile(dataFolder + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range published {
		got, tree := readBoth(t, c.file, c.format, c.block)
		checkPromises(t, got, Limits{Requests: c.requests, Chunks: math.MaxInt})
		s := got.Stats()
		if s.Requests != c.requests {
			t.Errorf("%s: %d requests, want %d", c.file, s.Requests, c.requests)
		}
		for _, q := range [][2]int{{s.Input.P50, c.p50}, {s.Input.P90, c.p90}} {
			if off := math.Abs(float64(q[0]-q[1])) / float64(q[1]); off > c.tolerance {
				t.Errorf("%s: input %d, want %d", c.file, q[0], q[1])
			}
		}
		if ideal := tree.ideal(); c.block > 0 && math.Abs(ideal-c.ideal) > 0.1 {
			t.Errorf("%s: ideal %.2f %% in blocks of %d, want %.1f", c.file, ideal, c.block, c.ideal)
		}
		if row := statsRow(c.file, c.format, s); !strings.Contains(string(page), row) {
			t.Errorf("bench/data/README.md has not the row\n%s", row)
		}
	}
}

// statsRow is a row of the table of statistics.
func statsRow(file, format string, s Stats) string {
	sessions, ideal := "–", "–"
	if s.Sessions > 0 {
		sessions = fmt.Sprint(s.Sessions)
	}
	if s.HitTokens > 0 {
		ideal = fmt.Sprintf("%.1f %%", 100*s.Ideal())
	}
	return fmt.Sprintf("| `%s` | %s | %d | %s | %d s | %d / %d / %d | %d / %d / %d | %.2f M | %s |", file, format, s.Requests, sessions, s.Span/time.Second,
		s.Input.P50, s.Input.P90, s.Input.P99, s.Output.P50, s.Output.P90, s.Output.P99, float64(s.InputTokens)/1e6, ideal)
}

// readBoth reads a trace of bench/data once, into a Trace and into a tree.
func readBoth(t *testing.T, file, format string, block int) (Trace, *tree) {
	t.Helper()
	f, err := formatNamed(format)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Options{}.withDefaults(f)
	if err != nil {
		t.Fatal(err)
	}
	in := input{limits: o.Limits}
	for _, p := range pathsOf(t, dataFolder+"/"+file) {
		r, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		in.sources = append(in.sources, source{name: p, r: r})
	}
	b := &both{assembly: &assembly{limits: o.Limits}, tree: newTree(block)}
	if err := f.read(&in, o, b); err != nil {
		t.Fatal(err)
	}
	got, err := b.finish(f)
	if err != nil {
		t.Fatal(err)
	}
	return got, b.tree
}

// both builds a trace and a tree.
type both struct {
	*assembly
	tree *tree
}

func (b *both) add(r record) error {
	b.tree.add(r)
	return b.assembly.add(r)
}

func pathsOf(t *testing.T, path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		return []string{path}
	}
	paths, err := filesIn(path)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// tree holds all prompts, a block an edge, below their models. It is the second
// way to the ideal hit rate: at the trace's own granularity, from what its reader
// found, without any hash. Blocks that are not full count here; texts are cut into blocks
// of so many tokens.
type tree struct {
	block      int
	nodes      map[edge]int
	texts      map[string]uint64
	hit, input int
}

type edge struct {
	from int
	id   uint64
}

func newTree(block int) *tree {
	return &tree{block: block, nodes: make(map[edge]int), texts: make(map[string]uint64)}
}

// ideal is the hit rate in percent of one cache without a bound.
func (c *tree) ideal() float64 { return 100 * float64(c.hit) / float64(c.input) }

func (c *tree) add(r record) {
	if r.prompt.given() {
		text := plainText(r.prompt)
		r.input = utf8.RuneCountInString(text) / CharsPerToken
		for runes := []rune(text); len(runes) > 0; {
			n := min(len(runes), c.block*CharsPerToken)
			r.pieces = append(r.pieces, piece{c.textID(string(runes[:n])), c.block})
			runes = runes[n:]
		}
	}
	at, _ := c.next(0, c.textID(r.model))
	hit, all := 0, true
	for _, p := range r.pieces {
		var ok bool
		if at, ok = c.next(at, p.id); all && ok {
			hit += p.tokens
		} else {
			all = false
		}
	}
	c.hit += min(hit, r.input)
	c.input += r.input
}

// next returns the node behind an edge, and whether it was there.
func (c *tree) next(from int, id uint64) (int, bool) {
	n, ok := c.nodes[edge{from, id}]
	if !ok {
		n = len(c.nodes) + 1
		c.nodes[edge{from, id}] = n
	}
	return n, ok
}

// textID numbers texts.
func (c *tree) textID(text string) uint64 {
	id, ok := c.texts[text]
	if !ok {
		id = uint64(len(c.texts))
		c.texts[text] = id
	}
	return id
}

// plainText returns the text of a prompt: of messages, their contents a line each.
func plainText(p prompt) string {
	var text string
	if json.Unmarshal(p.json, &text) == nil {
		return text
	}
	var messages []message
	if err := json.Unmarshal(p.json, &messages); err != nil {
		return ""
	}
	var contents []string
	for _, m := range messages {
		contents = append(contents, m.Content)
	}
	return strings.Join(contents, "\n")
}
