package engine_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

func chars(n int) string { return strings.Repeat("a", n) }

func TestPromptTokensAndBlocks(t *testing.T) {
	for _, tc := range []struct {
		text           string
		tokens, blocks int
	}{
		{"", 0, 0},
		{"a", 1, 0},
		{"abcd", 1, 0},
		{"abcde", 2, 0},
		{chars(63), 16, 0},
		{chars(64), 16, 1},
		{chars(65), 17, 1},
		{chars(128), 32, 2},
		{strings.Repeat("é", 64), 16, 1}, // characters, not bytes
		{strings.Repeat("\xff", 64), 16, 1},
	} {
		p := engine.NewPrompt(tc.text, "m")
		if p.Tokens != tc.tokens || len(p.Blocks) != tc.blocks {
			t.Errorf("%d bytes: %d tokens, %d blocks, want %d, %d", len(tc.text), p.Tokens, len(p.Blocks), tc.tokens, tc.blocks)
		}
		if got := engine.Tokens(tc.text); got != tc.tokens {
			t.Errorf("%d bytes: Tokens %d, want %d", len(tc.text), got, tc.tokens)
		}
	}
}

func TestPromptSeedsShareNothing(t *testing.T) {
	text := chars(640)
	seeds := [][]string{{"m", ""}, {"m", "salt"}, {"n", ""}, {"", "m"}}
	seen := map[uint64][]string{}
	for _, seed := range seeds {
		for _, h := range engine.NewPrompt(text, seed...).Blocks {
			if other, ok := seen[h]; ok {
				t.Errorf("seeds %q and %q share a block", seed, other)
			}
			seen[h] = seed
		}
	}
}

func TestCacheHits(t *testing.T) {
	stored := chars(64 * 4)
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"the same: the last token is computed": {stored, 48},
		"one character more":                   {stored + "b", 64},
		"longer":                               {stored + chars(640), 64},
		"shorter":                              {chars(64*2 + 1), 32},
		"within one block":                     {chars(63), 0},
		"other end":                            {chars(64*2) + strings.Repeat("b", 64), 32},
		"other beginning":                      {"b" + stored, 0},
		"empty":                                {"", 0},
	} {
		c, err := engine.NewCache(1024)
		if err != nil {
			t.Fatal(err)
		}
		c.Store(engine.NewPrompt(stored))
		if got := c.Cached(engine.NewPrompt(tc.text)); got != tc.want {
			t.Errorf("%s: %d cached, want %d", name, got, tc.want)
		}
	}
}

func TestCacheEvictsTailsBeforeHeads(t *testing.T) {
	c, _ := engine.NewCache(8 * engine.BlockTokens)
	old := engine.NewPrompt(chars(64*6) + "x")
	c.Store(old)
	c.Store(engine.NewPrompt(strings.Repeat("b", 64*4)))
	if got := c.Cached(old); got != 4*engine.BlockTokens {
		t.Errorf("%d tokens of the old prompt left, want its first 64", got)
	}
	if got := c.Len(); got != 8*engine.BlockTokens {
		t.Errorf("cache holds %d tokens, want 128", got)
	}
}

func TestCacheRejects(t *testing.T) {
	if _, err := engine.NewCache(engine.BlockTokens - 1); err == nil {
		t.Error("cache smaller than a block: no error")
	}
}

// twin is the cache written down plainly: whole texts of blocks in a list, the
// least recently used first.
type twin struct {
	capacity int
	blocks   []string
}

func (w *twin) cached(text string) int {
	n := 0
	for end := 64; end < len(text) && w.index(text[:end]) >= 0; end += 64 {
		n += 16
	}
	return n
}

func (w *twin) index(text string) int {
	for i, b := range w.blocks {
		if b == text {
			return i
		}
	}
	return -1
}

func (w *twin) store(text string) {
	for end := len(text) / 64 * 64; end > 0; end -= 64 {
		if i := w.index(text[:end]); i >= 0 {
			w.blocks = append(w.blocks[:i:i], w.blocks[i+1:]...)
		}
		w.blocks = append(w.blocks, text[:end])
	}
	if over := len(w.blocks) - w.capacity; over > 0 {
		w.blocks = w.blocks[over:]
	}
}

func TestCacheEqualsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 12).Draw(t, "blocks")
		c, _ := engine.NewCache(capacity * engine.BlockTokens)
		w := &twin{capacity: capacity}
		piece := rapid.SampledFrom([]string{chars(64), strings.Repeat("b", 64), chars(10)})
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			text := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "text"), "")
			p := engine.NewPrompt(text)
			if got, want := c.Cached(p), w.cached(text); got != want {
				t.Fatalf("%d characters: %d cached, twin says %d", len(text), got, want)
			}
			if rapid.Bool().Draw(t, "store") {
				c.Store(p)
				w.store(text)
			}
		}
	})
}

// Reading must not change the order of eviction, and a prefix is never cached
// less than what it begins.
func TestCachedIsMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := engine.NewCache(1 << 16)
		stored := rapid.StringN(0, 600, -1).Draw(t, "stored")
		c.Store(engine.NewPrompt(stored))
		last := 0
		for _, more := range []string{"", "x", chars(64), chars(640)} {
			got := c.Cached(engine.NewPrompt(stored + more))
			if got < last {
				t.Fatalf("%d cached, less than %d of a prefix of it", got, last)
			}
			last = got
		}
	})
}

func TestTiming(t *testing.T) {
	p := engine.Params{
		StepTime: 10 * time.Millisecond, PrefillToken: time.Millisecond, DecodeSequence: 2 * time.Millisecond,
		ContextToken: time.Microsecond, StepTokens: 100, KVTokens: 1000,
	}
	for uncached, want := range map[int]time.Duration{
		0: 10 * time.Millisecond, 1: 11 * time.Millisecond, 100: 110 * time.Millisecond,
		101: 121 * time.Millisecond, 250: 280 * time.Millisecond,
	} {
		if got := p.Prefill(uncached); got != want {
			t.Errorf("prefill of %d: %v, want %v", uncached, got, want)
		}
	}
	if got, want := p.DecodeStep(3, 500), 16500*time.Microsecond; got != want {
		t.Errorf("decode step: %v, want %v", got, want)
	}
}

// TestLlama70BTimesAsPublished pins what the defaults were chosen for: an 8k
// prompt takes 200 to 300 ms cold and about 40 ms when all but 400 tokens are
// cached, where SageMaker publishes 280 and 63.
func TestLlama70BTimesAsPublished(t *testing.T) {
	p := engine.Llama70B()
	cold, warm := p.FrontEnd+p.Prefill(8400), p.FrontEnd+p.Prefill(400)
	if cold < 200*time.Millisecond || cold > 300*time.Millisecond {
		t.Errorf("cold %v", cold)
	}
	if warm < 35*time.Millisecond || warm > 65*time.Millisecond {
		t.Errorf("warm %v", warm)
	}
}

func TestParamsValidate(t *testing.T) {
	for _, p := range []engine.Params{engine.Llama70B(), engine.Qwen32B(), engine.Llama8B()} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	err := engine.Params{StepTime: -1, PrefillToken: -1, DecodeSequence: -1, ContextToken: -1, FrontEnd: -1, KVTokens: 15}.Validate()
	for _, name := range []string{"StepTime", "PrefillToken", "DecodeSequence", "ContextToken", "FrontEnd", "StepTokens", "KVTokens"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("no word about %s in %v", name, err)
		}
	}
}
