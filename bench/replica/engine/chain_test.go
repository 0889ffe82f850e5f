package engine_test

import (
	"strings"
	"testing"

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
		p := engine.NewPrompt(16, tc.text, "m")
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
		for _, h := range engine.NewPrompt(16, text, seed...).Blocks {
			if other, ok := seen[h]; ok {
				t.Errorf("seeds %q and %q share a block", seed, other)
			}
			seen[h] = seed
		}
	}
}
