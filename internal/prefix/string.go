package prefix

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
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
	s.state, s.sink, s.hashLeft, s.hashed = stateString, to, hashLimit, false
	s.escape, s.high, s.out, s.odd = 0, 0, 0, false
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
// whether more is wanted is asked before an escape that may be an error, and what
// is up to there cannot be one.
func (s *Scanner) readString(p []byte) int {
	for i := 0; i < len(p); {
		if s.escape != 0 {
			s.readEscape(p[i])
			if i++; s.state == stateFail {
				return i
			}
			continue
		}
		i += s.fill(p[i:])
		switch {
		case i == len(p):
			return i
		case p[i] == '"':
			s.endString()
			return i + 1
		case s.roomy():
			s.emit(s.toValid(s.buf[:s.out]))
			s.out, s.escape = 0, 1
		default:
			s.emitWhole()
		}
		if !s.wants() {
			s.out, s.high, s.escape = 0, 0, 0
			s.state = stateSkipString
			return i
		}
		i += int(s.escape)
	}
	return len(p)
}

// bufSlack is how many bytes the decoding of one escape adds to the buffer at
// most: half a surrogate pair, and what follows it.
const bufSlack = 8

// roomy reports whether the buffer takes another escape.
func (s *Scanner) roomy() bool { return s.out <= len(s.buf)-bufSlack }

// fill adds to the buffer what p begins with, without its escapes, as long as
// there is room. It stops in front of the quote that ends the string and of an
// escape that is wrong or not all there.
func (s *Scanner) fill(p []byte) int {
	in := 0
	for in < len(p) && p[in] != '"' && s.roomy() {
		if p[in] == '\\' {
			n := s.unescape(p[in:])
			if n == 0 {
				return in
			}
			in += n
			continue
		}
		s.flushHigh()
		part := p[in:min(len(p), in+len(s.buf)-s.out)]
		n := copy(s.buf[s.out:], part[:indexSpecial(part)])
		in, s.out = in+n, s.out+n
	}
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

// emitWhole sends on what is in the buffer, but for the beginning of a character
// whose end is still to come.
func (s *Scanner) emitWhole() {
	whole := s.out - incomplete(s.buf[:s.out])
	s.emit(s.toValid(s.buf[:whole]))
	s.out = copy(s.buf[:], s.buf[whole:s.out])
}

// emit sends decoded bytes to where they go, when more will follow.
func (s *Scanner) emit(p []byte) {
	if s.sink&sinkHash != 0 {
		s.absorb(p)
	}
	s.write(p)
}

func (s *Scanner) write(p []byte) {
	if s.sink&sinkText != 0 {
		s.slot.write(p, s.limit)
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

// absorb adds bytes to the digest of a value that is not all there yet.
func (s *Scanner) absorb(p []byte) {
	if !s.hashed {
		s.hashed = true
		s.sum.Reset()
	}
	n := min(len(p), s.hashLeft)
	_, _ = s.sum.Write(p[:n])
	s.hashLeft -= n
}

// digest returns the hash of a value that ends with p. Most are all in p.
func (s *Scanner) digest(p []byte) uint64 {
	p = p[:min(len(p), s.hashLeft)]
	if !s.hashed {
		return xxhash.Sum64(p)
	}
	_, _ = s.sum.Write(p)
	return s.sum.Sum64()
}

// endString goes on behind a string.
func (s *Scanner) endString() {
	s.flushHigh()
	s.finishString(s.toValid(s.buf[:s.out]))
}

// finishString goes on behind a string that ends with last.
func (s *Scanner) finishString(last []byte) {
	to := s.sink
	if len(last) > 0 {
		s.write(last)
	}
	s.sink = 0
	var digest uint64
	if to&sinkHash != 0 {
		digest = s.digest(last)
	}
	switch {
	case to&sinkName != 0:
		s.state = stateColon
		s.member(s.name.bytes(), digest)
		return
	case to&sinkText != 0:
		s.endPiece()
	case to&sinkField != 0:
		s.field.end(&s.sum)
	}
	s.valueEnd(mix(tagString, digest))
}
