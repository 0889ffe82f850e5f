package prefix

import (
	"bytes"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// elements reads elements of an array that have no text, and the commas behind
// them, as long as they are simple. Anything else is left where it is.
func (s *Scanner) elements(p []byte) int {
	f := s.top()
	if !f.array {
		return 0
	}
	switch s.view {
	case viewHash:
		return s.digestRun(p)
	case viewContent, viewItem, viewMessage:
		return s.silent(f, p)
	case viewIDs:
		if isNumber(p[0]) {
			return s.tokenIDs(p)
		}
		return s.silent(f, p)
	}
	return 0
}

// silent reads elements that are no text, and the commas behind them.
func (s *Scanner) silent(f *frame, p []byte) (n int) {
	for n < len(p) {
		size, digest := 0, uint64(0)
		switch c := p[n]; {
		case c == '"' && s.view != viewMessage && !bytes.HasPrefix(p[n:], []byte(`""`)), c == '{' && s.depth == MaxDepth:
			return n
		case c == '[' && !f.hash:
			size = s.skipShort(p[n:])
		case s.view == viewIDs && isNumber(c):
			return n
		default:
			size, digest = s.simple(p[n:], f.hash)
		}
		next := n + size
		if size == 0 || next == len(p) || p[next] != ',' {
			break
		}
		if f.hash {
			f.sum = mix(f.sum, digest)
		}
		s.state = stateValue
		n = next + 1
		n += spaces(p[n:])
	}
	return n
}

// skipShort returns the length of the container that p begins with if it is
// short and all there, else 0.
func (s *Scanner) skipShort(p []byte) int {
	state := s.state
	s.beginSkip(false)
	n, closed := s.skipTo(p[:min(len(p), maxShort)])
	s.state = state
	if !closed {
		return 0
	}
	return n
}

// digestRun reads on in containers of which only the digests count, as long as what
// is in them is simple. It stops in front of anything else.
func (s *Scanner) digestRun(p []byte) (n int) {
	f := s.top()
	for n < len(p) {
		if !f.array {
			size := s.digestName(f, p[n:])
			if n += size; size == 0 || n == len(p) {
				return n
			}
		}
		size, digest := s.simple(p[n:], true)
		switch next := n + size; {
		case size > 0 && next < len(p):
			size, f = s.digestEnd(f, digest, p[next:])
			if n = next + size; f == nil {
				return n
			}
		case size == 0 && isOpening(p[n]) && s.depth < MaxDepth:
			f = s.push(viewHash, p[n] == '[', true)
			f.elem, s.view = viewHash, viewHash
			n++
		default:
			return n
		}
	}
	return n
}

// digestName reads a name and its colon.
func (s *Scanner) digestName(f *frame, p []byte) int {
	if p[0] != '"' {
		return 0
	}
	name, n := s.wholeString(p)
	if n == 0 || n == len(p) || p[n] != ':' || string(name) == "cache_control" {
		return 0
	}
	f.name, f.drop = xxhash.Sum64(name), false
	s.state, s.view = stateValue, viewHash
	return n + 1
}

// digestEnd reads what follows a value with a digest: the ends of containers, and
// a comma. It returns the container to go on in, or nil if there is something else.
func (s *Scanner) digestEnd(f *frame, digest uint64, p []byte) (n int, in *frame) {
	for {
		if f.array {
			f.sum = mix(f.sum, digest)
		} else {
			s.addMember(f, member{f.name, digest})
		}
		s.state = stateAfter
		if n == len(p) {
			return n, nil
		}
		switch c := p[n]; {
		case c == ',' && f.array:
			s.state, s.view = stateValue, viewHash
			return n + 1, f
		case c == ',':
			s.state = stateKey
			return n + 1, f
		case c != ']' && f.array, c != '}' && !f.array:
			return n, nil
		}
		n++
		digest = s.digestOf(f)
		s.depth--
		if f = s.top(); f.view != viewHash {
			s.valueEnd(digest)
			return n, nil
		}
	}
}

// simple returns the length and, if hash is set, the digest of a value that has
// nothing in it: a short string, a number or literal, or an empty container. The
// length is 0 if there is none.
func (s *Scanner) simple(p []byte, hash bool) (size int, digest uint64) {
	switch c := p[0]; {
	case isScalar[c]:
		size = scalarLen(p)
		if hash {
			digest = mix(tagScalar, xxhash.Sum64(p[:size]))
		}
		return size, digest
	case c == '"':
		text, size := s.wholeString(p)
		if size > 0 && hash {
			digest = mix(tagString, xxhash.Sum64(text))
		}
		return size, digest
	case isOpening(c) && s.depth == MaxDepth:
		if size = s.skipShort(p); size > 0 {
			s.notes |= NoteDepth
			digest = mix(tagDeep, xxhash.Sum64(p[:size]))
		}
		return size, digest
	case isOpening(c) && len(p) > 1 && p[1] == closing(c):
		if c == '[' {
			return 2, tagArray
		}
		return 2, emptyObject
	}
	return 0, 0
}

// scalarLen returns the length of the number or literal that p begins with.
func scalarLen(p []byte) int {
	for i, c := range p {
		if !isScalar[c] {
			return i
		}
	}
	return len(p)
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

// tokenIDs reads token ids behind the first, with the commas between them. As
// they are text as they stand there, many are taken at once.
func (s *Scanner) tokenIDs(p []byte) (n int) {
	p = p[:min(len(p), s.limit)]
	for i := 0; i < len(p) && isNumber(p[i]); i++ {
		i += scalarLen(p[i:])
		if i == len(p) {
			break
		}
		if n = i; p[i] != ',' {
			break
		}
	}
	if n > 0 {
		s.slot.write([]byte{','}, s.limit)
		s.slot.write(p[:n], s.limit)
		s.valueEnd(0)
	}
	return n
}
