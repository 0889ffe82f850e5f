package prefix

import (
	"strings"
	"testing"
)

// TestCutRunes: counting in words agrees with counting characters, at every limit.
func TestCutRunes(t *testing.T) {
	for _, text := range []string{
		"", "a", strings.Repeat("a", 100), strings.Repeat("é", 50), strings.Repeat("店b", 40), strings.Repeat("a", 37) + "🚲" + strings.Repeat("b", 70),
	} {
		runes := []rune(text)
		for limit := range 110 {
			want := string(runes[:min(limit, len(runes))])
			n, chars := cutRunes([]byte(text), limit)
			if text[:n] != want || chars != min(limit, len(runes)) {
				t.Errorf("%q limit %d: %d bytes, %d characters, want %d bytes", text, limit, n, chars, len(want))
			}
			if m, c := advance([]byte(text), limit); m != n || c != chars {
				t.Errorf("%q limit %d: advance gives %d, %d, cutRunes %d, %d", text, limit, m, c, n, chars)
			}
		}
	}
}

// TestAdvance: the digest of a marker belongs to the character behind it.
func TestAdvance(t *testing.T) {
	digest := "\xFF" + "\xFF\x80abc\xC3\x00\xFF"
	text := "é" + digest + "<x>" + digest + "<y>"
	for limit, want := range []int{0, 2, 2 + 10, 2 + 11, 2 + 12, 2 + 12 + 10, 2 + 12 + 11, 2 + 12 + 12, 2 + 12 + 12} {
		if n, chars := advance([]byte(text), limit); n != want || chars != min(limit, 7) {
			t.Errorf("limit %d: %d bytes, %d characters, want %d bytes", limit, n, chars, want)
		}
	}
	if got := string(appendVisible(nil, []byte(text))); got != "é<x><y>" {
		t.Errorf("visible %q", got)
	}
}
