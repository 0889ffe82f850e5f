package prefix

import (
	"unicode/utf16"
	"unicode/utf8"
)

// toValid returns p with U+FFFD in place of each byte that is not UTF-8, as Go
// decodes: p itself, or s.fixed.
func (s *Scanner) toValid(p []byte) []byte {
	if utf8.Valid(p) {
		return p
	}
	out := s.fixed[:0]
	for len(p) > 0 {
		size := 1
		if maybeStart[p[0]] {
			_, size = utf8.DecodeRune(p)
		}
		if size == 1 && p[0] >= utf8.RuneSelf {
			out = append(out, "\uFFFD"...)
		} else {
			out = append(out, p[:size]...)
		}
		p = p[size:]
	}
	return out
}

// maybeStart has the bytes that can begin a character of several.
var maybeStart = func() (t [256]bool) {
	for c := 0xC2; c <= 0xF4; c++ {
		t[c] = true
	}
	return t
}()

// incomplete returns how many bytes at the end of p begin a character that is
// not all there.
func incomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; isStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// unescaped has what the letter of a short escape stands for.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape adds to the buffer what the escape that p begins with stands for. It
// returns the length of the escape, or 0 if it is wrong or not all there.
func (s *Scanner) unescape(p []byte) int {
	const short, long = len(`\n`), len(`\u0000`)
	if len(p) < short {
		return 0
	}
	if b := unescaped[p[1]]; b != 0 {
		s.flushHigh()
		s.buf[s.out] = b
		s.out++
		return short
	}
	if len(p) < long || p[1] != 'u' {
		return 0
	}
	unit := hexDigit(p[2])<<12 | hexDigit(p[3])<<8 | hexDigit(p[4])<<4 | hexDigit(p[5])
	if unit < 0 {
		return 0
	}
	s.codeUnit(unit)
	return long
}

// readEscape takes one byte of an escape sequence behind its backslash.
func (s *Scanner) readEscape(c byte) {
	if s.escape == 1 {
		switch b := unescaped[c]; {
		case c == 'u':
			s.escape, s.unit = 2, 0
		case b == 0:
			s.state = stateFail
		default:
			s.escape = 0
			s.flushHigh()
			s.put(rune(b))
		}
		return
	}
	digit := hexDigit(c)
	if digit < 0 {
		s.state = stateFail
		return
	}
	s.unit = s.unit<<4 | digit
	if s.escape++; s.escape == 6 {
		s.escape = 0
		s.codeUnit(s.unit)
	}
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// codeUnit takes a UTF-16 unit. A surrogate without its other half is U+FFFD.
func (s *Scanner) codeUnit(u rune) {
	if s.high != 0 {
		if r := utf16.DecodeRune(s.high, u); r != utf8.RuneError {
			s.high = 0
			s.put(r)
			return
		}
		s.flushHigh()
	}
	switch {
	case 0xD800 <= u && u < 0xDC00:
		s.high = u
	case utf16.IsSurrogate(u):
		s.put(utf8.RuneError)
	default:
		s.put(u)
	}
}

// flushHigh ends a surrogate pair that will not be completed.
func (s *Scanner) flushHigh() {
	if s.high != 0 {
		s.high = 0
		s.put(utf8.RuneError)
	}
}

// put adds a character to the buffer, which must have room for it.
func (s *Scanner) put(r rune) { s.out += utf8.EncodeRune(s.buf[s.out:], r) }
