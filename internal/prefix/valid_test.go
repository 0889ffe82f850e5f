package prefix

import (
	"testing"
	"unicode/utf8"
)

// The first and last characters of each length stay, beside a byte that is none of
// a character, which becomes U+FFFD as when Go decodes.
func TestToValidKeepsEveryCharacter(t *testing.T) {
	for _, c := range []rune{0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x3ffff, 0x40000, 0xfffff, 0x100000, utf8.MaxRune} {
		for _, wrong := range []string{"\xff", "\x80", "\xc0", "\xc1", "\xf5", "\xc2", "\xf4\x90", "\xed\xa0\x80", ""} {
			for _, text := range []string{wrong + string(c), string(c) + wrong, string(c) + wrong + string(c)} {
				var s Scanner
				if got, want := string(s.toValid([]byte(text))), string([]rune(text)); got != want {
					t.Errorf("%q is %q, want %q", text, got, want)
				}
			}
		}
	}
}

// A letter that begins no escape stays wrong when four hexadecimal digits follow,
// in one chunk as in many.
func TestWrongEscapesBeforeDigits(t *testing.T) {
	for c := byte(' '); c < 0x7f; c++ {
		body := []byte(`{"messages":[{"role":"user","content":"a\` + string(c) + `0041b"}]}`)
		want := describe(Chat, 100, true, byteByByte(body))
		if got := describe(Chat, 100, true, [][]byte{body}); got != want {
			t.Errorf("%s in one chunk gives\n%s, byte by byte\n%s", body, got, want)
		}
	}
}
