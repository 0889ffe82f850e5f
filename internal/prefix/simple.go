package prefix

import (
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// maxShort is the longest string that is read at a glance, with its quote.
const maxShort = 64

// simple returns the length and, if hash is set, the digest of a value that has
// nothing in it: a short string, whose text is returned too, a number or literal,
// or an empty container. The length is 0 if there is none.
func (s *Scanner) simple(p []byte, hash bool) (text []byte, size int, digest uint64) {
	switch c := p[0]; {
	case isScalar[c]:
		size = scalarLen(p)
		if hash {
			digest = mix(tagScalar, xxhash.Sum64(p[:size]))
		}
	case c == '"':
		text, size = s.wholeString(p)
		if size > 0 && hash {
			digest = mix(tagString, xxhash.Sum64(text))
		}
	case !isOpening(c):
	case s.depth == MaxDepth && hash:
		if size = s.skipShort(p); size > 0 {
			s.notes |= NoteDepth
			digest = mix(tagDeep, xxhash.Sum64(p[:size]))
		}
	case len(p) > 1 && p[1] == closing(c):
		if size, digest = 2, emptyObject; c == '[' {
			digest = tagArray
		}
	}
	return text, size, digest
}

// wholeString returns the string that p begins with, and its length with quotes
// and escapes, if it is short and all there. The length is 0 if it is not.
func (s *Scanner) wholeString(p []byte) (text []byte, size int) {
	p = p[:min(len(p), maxShort)]
	for i, c := range p[1:] {
		switch {
		case c == '"':
			return p[1 : 1+i], i + 2
		case c == '\\' || c >= utf8.RuneSelf:
			return s.decodeWhole(p)
		}
	}
	return nil, 0
}

func (s *Scanner) decodeWhole(p []byte) (text []byte, size int) {
	s.out, s.high = 0, 0
	n := 1 + s.fill(p[1:])
	if n == len(p) || p[n] != '"' {
		return nil, 0
	}
	s.flushHigh()
	return s.toValid(s.buf[:s.out]), n + 1
}

func isOpening(c byte) bool { return c == '[' || c == '{' }

// closing returns the bracket that closes c.
func closing(c byte) byte { return c + 2 }
