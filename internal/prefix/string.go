package prefix

import (
	"encoding/binary"
	"math"
	"math/bits"
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
