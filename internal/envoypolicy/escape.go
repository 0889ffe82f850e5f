package envoypolicy

import (
	"fmt"
	"strconv"
	"strings"
)

// unescape decodes the C escapes of a string of the text form: \n and the like,
// octal \303, \xc3, \u00fc, \U0001f525. The escaped bytes are UTF-8 together.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		var err error
		if s, err = unescapeOne(&b, rest); err != nil {
			return "", err
		}
	}
}

// unescapeOne decodes the escape at the beginning of s, after its backslash, and
// returns what follows.
func unescapeOne(b *strings.Builder, s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("a string that ends in an escape")
	}
	const names, meanings = `abfnrtv\'"?`, "\a\b\f\n\r\t\v\\'\"?"
	if i := strings.IndexByte(names, s[0]); i >= 0 {
		b.WriteByte(meanings[i])
		return s[1:], nil
	}
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		return unescapeNumber(b, s, 8, 1, 3)
	case c == 'x' || c == 'X':
		return unescapeNumber(b, s[1:], 16, 1, 2)
	case c == 'u':
		return unescapeNumber(b, s[1:], 16, 4, 4)
	case c == 'U':
		return unescapeNumber(b, s[1:], 16, 8, 8)
	default:
		return "", fmt.Errorf("unknown escape %q", `\`+s[:1])
	}
}

// unescapeNumber writes a byte of up to 3 digits, or a character of 4 or 8.
func unescapeNumber(b *strings.Builder, s string, base, low, high int) (string, error) {
	n := 0
	for n < high && n < len(s) && isDigit(s[n], base) {
		n++
	}
	if n < low {
		return "", fmt.Errorf("escape with %d digits, want at least %d", n, low)
	}
	bits := 8
	if low > 1 {
		bits = 32
	}
	v, err := strconv.ParseUint(s[:n], base, bits)
	if err != nil {
		return "", fmt.Errorf("escape %s: %w", s[:n], err)
	}
	if low > 1 {
		b.WriteRune(rune(v))
	} else {
		b.WriteByte(byte(v))
	}
	return s[n:], nil
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
