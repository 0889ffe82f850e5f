package prefix

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden keys anew; a released key must never change")

const goldenFile = "testdata/keys.golden"

// TestGoldenKeys pins the keys: routers of different versions share a fleet.
func TestGoldenKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("# key of each case by prefix length, then the kind and the number of characters it covers\n")
	cases := readCases(t)
	files := make([]string, 0, len(cases))
	for file := range cases {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		c := cases[file]
		for _, n := range []int{17, 1024, 4096} {
			r, _ := readWhole(c.head, n, c.body)
			if r.Kind == None {
				r.Key = 0
			}
			fmt.Fprintf(&b, "%-44s N=%-5d %016x %s %d\n", file, n, r.Key, r.Kind, r.Chars)
		}
	}
	if *rewrite {
		if err := os.WriteFile(goldenFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() == string(want) {
		return
	}
	wantLines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(b.String(), "\n") {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Errorf("line %d is now\n%s", i+1, line)
		}
	}
}

// TestKeyIsChain computes a key by hand from the layout in the package's doc.
func TestKeyIsChain(t *testing.T) {
	const body = `{"model":"m","lora_path":"a","cache_salt":"s","prompt_cache_key":"t","prompt":"%s"}`
	text := strings.Repeat("0123456789", 60)
	r, _ := readWhole(Head{Path: "/v1/completions"}, 1024, fmt.Appendf(nil, body, text))
	frame := "warmpath/1t" +
		"\x01\x00\x00\x00\x00\x00\x00\x00t" + "\x01\x00\x00\x00\x00\x00\x00\x00s" +
		"\x01\x00\x00\x00\x00\x00\x00\x00m" + "\x01\x00\x00\x00\x00\x00\x00\x00a"
	h := seeded(0, frame)
	h1 := seeded(h, text[:256])
	h2 := seeded(h1, text[256:512])
	if want := []uint64{h1, h2}; !slices.Equal(r.Levels, want) || r.Key != seeded(h2, text[512:]) || r.Chars != 600 {
		t.Errorf("levels %x key %x chars %d, want %x %x 600", r.Levels, r.Key, r.Chars, want, seeded(h2, text[512:]))
	}
}

// TestLevels: a key cut at a multiple of LevelChars is that level of a longer one.
func TestLevels(t *testing.T) {
	for name, text := range map[string]string{
		"ascii": strings.Repeat("abcdefg ", 700), "cjk": strings.Repeat("店内配件", 1200), "emoji": strings.Repeat("🚲é", 2500),
	} {
		body := []byte(`{"prompt":"` + text + `"}`)
		long, _ := readWhole(Head{Path: "/v1/completions"}, 4096, body)
		if len(long.Levels) != 16 {
			t.Fatalf("%s: %d levels of 4096 characters", name, len(long.Levels))
		}
		for k := 1; k <= 16; k++ {
			r, shown := readWhole(Head{Path: "/v1/completions"}, k*LevelChars, body)
			if r.Key != long.Levels[k-1] || len([]rune(shown)) != k*LevelChars {
				t.Errorf("%s: key of %d characters is not level %d", name, k*LevelChars, k)
			}
		}
	}
}
