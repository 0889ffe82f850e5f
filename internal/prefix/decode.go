package prefix

import (
	"unicode/utf16"
	"unicode/utf8"
)

// decode takes bytes without escapes; what is not UTF-8 becomes U+FFFD, one for
// each byte, as Go decodes.
func (s *Scanner) decode(p []byte) {
	if len(p) == 0 {
		return
	}
	s.flushHigh()
	for s.carryN > 0 && len(p) > 0 {
		s.carry[s.carryN] = p[0]
		s.carryN++
		p = p[1:]
		s.drainCarry()
	}
	if utf8.Valid(p) {
		s.emit(p)
		return
	}
	for len(p) > 0 {
		n := validLen(p)
		s.emit(p[:n])
		p = p[n:]
		if len(p) > 0 && !utf8.FullRune(p) {
			s.carryN = copy(s.carry[:], p)
			return
		}
		if len(p) > 0 {
			s.emitRune(utf8.RuneError)
			p = p[1:]
		}
	}
}

// validLen returns the length of the valid UTF-8 that p begins with.
func validLen(p []byte) int {
	n := 0
	for n < len(p) {
		r, size := utf8.DecodeRune(p[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

// drainCarry emits the characters that are complete in the carry.
func (s *Scanner) drainCarry() {
	for s.carryN > 0 && utf8.FullRune(s.carry[:s.carryN]) {
		r, size := utf8.DecodeRune(s.carry[:s.carryN])
		s.emitRune(r)
		s.carryN = copy(s.carry[:], s.carry[size:s.carryN])
	}
}

// flushCarry ends characters that will not be completed.
func (s *Scanner) flushCarry() {
	for ; s.carryN > 0; s.carryN-- {
		s.emitRune(utf8.RuneError)
	}
}

// flushHigh ends a surrogate pair that will not be completed.
func (s *Scanner) flushHigh() {
	if s.high != 0 {
		s.high = 0
		s.emitRune(utf8.RuneError)
	}
}

func (s *Scanner) flush() {
	s.flushHigh()
	s.flushCarry()
}

// unescaped has what the letter of a short escape stands for.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
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
			s.emitRune(rune(b))
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
			s.emitRune(r)
			return
		}
		s.flushHigh()
	}
	switch {
	case 0xD800 <= u && u < 0xDC00:
		s.high = u
	case utf16.IsSurrogate(u):
		s.emitRune(utf8.RuneError)
	default:
		s.emitRune(u)
	}
}

func (s *Scanner) emitRune(r rune) {
	n := utf8.EncodeRune(s.tmp[:], r)
	s.emit(s.tmp[:n])
}
