package prefix

import (
	"encoding/binary"
	"math/bits"
)

// blockLen is how many bytes of something skipped are looked at at once.
const blockLen = 64

// block has one bit for each of blockLen bytes, the first being the lowest.
type block struct{ quotes, opens, closes, slashes uint64 }

// classify finds the bytes of p[:blockLen] that matter to something skipped.
func classify(p []byte) (b block) {
	_ = p[blockLen-1]
	for i := 0; i < blockLen; i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		lower := w | 0x20*lowBits // '[' and '{' become one, and so do ']' and '}'
		b.quotes |= gather(equal(w, '"')) << i
		b.opens |= gather(equal(lower, '{')) << i
		b.closes |= gather(equal(lower, '}')) << i
		b.slashes |= gather(equal(w, '\\')) << i
	}
	return b
}

// equal has the high bit set of each byte of w that is c.
func equal(w uint64, c uint64) uint64 {
	x := w ^ c*lowBits
	return ^(x&^highBits + ^uint64(highBits) | x) & highBits
}

// gather moves the high bits of the eight bytes into the lowest byte.
func gather(high uint64) uint64 { return high >> 7 * 0x0102040810204080 >> 56 }

// quoted returns the bits that are within quotes, an opening quote included, in
// a block that begins outside of them.
func quoted(quotes uint64) uint64 {
	for shift := 1; shift < blockLen; shift <<= 1 {
		quotes ^= quotes << shift
	}
	return quotes
}

// skipBlocks skips whole blocks, from a place outside of strings on. It stops
// within a string at the end of a block, in front of a backslash, or where the
// container ends, and returns how many bytes were skipped.
func (s *Scanner) skipBlocks(p []byte) (n int, closed bool) {
	for len(p)-n >= blockLen && !s.inQuote {
		b := classify(p[n:])
		size := bits.TrailingZeros64(b.slashes) // blockLen if there is none
		in := quoted(b.quotes)
		if size < blockLen {
			in |= ^uint64(0) << size
		}
		if size, closed = s.brackets(b.opens&^in, b.closes&^in, size); closed {
			return n + size, true
		}
		n += size
		s.inQuote = size > 0 && quoted(b.quotes)>>(size-1)&1 != 0
		if size < blockLen {
			break
		}
	}
	return n, false
}

// brackets counts the brackets of a block of the given size. If the container
// ends in it, it returns the size up to there.
func (s *Scanner) brackets(opens, closes uint64, size int) (n int, closed bool) {
	if c := bits.OnesCount64(closes); s.skipDepth > c {
		s.skipDepth += bits.OnesCount64(opens) - c
		return size, false
	}
	for all := opens | closes; all != 0; all &= all - 1 {
		if all&-all&opens != 0 {
			s.skipDepth++
			continue
		}
		if s.skipDepth--; s.skipDepth == 0 {
			return bits.TrailingZeros64(all) + 1, true
		}
	}
	return size, false
}
