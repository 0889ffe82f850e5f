package prefix

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const maxInt = math.MaxInt

// sink is the set of places that the decoded bytes of a value go to.
type sink uint8

const (
	sinkText sink = 1 << iota
	sinkHash
	sinkField
	sinkType
	sinkName
)

// beginString begins a string behind its quote.
func (s *Scanner) beginString(to sink, hashLimit int) {
	s.state, s.sink, s.hashLeft = stateString, to, hashLimit
	s.escape, s.high, s.carryN, s.odd = 0, 0, 0, false
	if to&sinkHash != 0 {
		s.sum.Reset()
	}
	if !s.wants() {
		s.state = stateSkipString
	}
}

// wants reports whether anything more of the string is of use.
func (s *Scanner) wants() bool {
	return s.sink&(sinkField|sinkType|sinkName) != 0 ||
		s.sink&sinkHash != 0 && s.hashLeft > 0 ||
		s.sink&sinkText != 0 && !s.full()
}

// readString decodes a string up to its end, or to where the rest of it is of
// no use. That place does not depend on the chunks as far as anyone can see:
// whether more is wanted is asked before an escape that may be an error, and the
// bytes and short escapes up to there cannot be.
func (s *Scanner) readString(p []byte) int {
	for i := 0; i < len(p); {
		if s.escape != 0 {
			s.readEscape(p[i])
			if i++; s.state == stateFail {
				return i
			}
			continue
		}
		n := s.readPlain(p[i:])
		i += n
		switch {
		case i < len(p) && p[i] == '"':
			s.flush()
			s.endString()
			return i + 1
		case i < len(p) && p[i] == '\\':
			s.flushCarry()
		}
		if !s.wants() {
			s.carryN, s.high = 0, 0
			s.state = stateSkipString
			return i
		}
		if i < len(p) && p[i] == '\\' {
			s.escape = 1
			i++
		}
	}
	return len(p)
}

// readPlain decodes what stands for itself and short escapes, a bufferful at
// most. It stops in front of the quote that ends the string and of an escape
// that is longer, wrong, or not all there.
func (s *Scanner) readPlain(p []byte) int {
	in, out := 0, 0
	for in < len(p) {
		part := p[in:min(len(p), in+len(s.buf)-out)]
		n := indexSpecial(part)
		copy(s.buf[out:], part[:n])
		in, out = in+n, out+n
		if n == len(part) || part[n] == '"' || in+1 == len(p) || unescaped[p[in+1]] == 0 {
			break
		}
		s.buf[out] = unescaped[p[in+1]]
		in, out = in+2, out+1
	}
	s.decode(s.buf[:out])
	return in
}

// indexSpecial returns the index of the first quote or backslash, or len(p).
func indexSpecial(p []byte) int {
	i := 0
	for ; len(p)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		q, b := w^('"'*lowBits), w^('\\'*lowBits)
		if m := ((q-lowBits)&^q | (b-lowBits)&^b) & highBits; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if p[i] == '"' || p[i] == '\\' {
			return i
		}
	}
	return i
}

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

// emit sends decoded bytes to where they go.
func (s *Scanner) emit(p []byte) {
	if s.sink&sinkText != 0 {
		s.slot.write(p, s.limit)
	}
	if s.sink&sinkHash != 0 && s.hashLeft > 0 {
		n := min(len(p), s.hashLeft)
		_, _ = s.sum.Write(p[:n])
		s.hashLeft -= n
	}
	switch {
	case s.sink&sinkField != 0:
		s.field.write(p, &s.sum)
	case s.sink&sinkType != 0:
		s.top().typ.append(p)
	case s.sink&sinkName != 0:
		s.name.append(p)
	}
}

// endString goes on behind a string.
func (s *Scanner) endString() {
	to := s.sink
	s.sink = 0
	var digest uint64
	if to&sinkHash != 0 {
		digest = s.sum.Sum64()
	}
	if to&sinkName != 0 {
		s.state = stateColon
		s.member(s.name.bytes(), digest)
		return
	}
	if to&sinkText != 0 {
		s.endPiece()
	}
	if to&sinkField != 0 {
		s.field.end(&s.sum)
	}
	s.valueEnd(mix(tagString, digest))
}
