package prefix

import "github.com/cespare/xxhash/v2"

// elements reads elements of an array that have no text, and the commas behind
// them, as long as they are simple. Anything else is left where it is.
func (s *Scanner) elements(p []byte) (n int) {
	f := s.top()
	if !f.array {
		return 0
	}
	texts := false
	switch s.view {
	case viewIDs:
		return s.tokenIDs(p)
	case viewContent, viewItem:
		texts = true
	case viewHash, viewMessage:
	default:
		return 0
	}
	if s.depth == MaxDepth {
		return 0
	}
	for n < len(p) && !(texts && p[n] == '"') {
		size, digest := simple(p[n:], f.hash)
		next := n + size
		if size == 0 || next == len(p) || p[next] != ',' {
			return n
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

// simple returns the length and, if hash is set, the digest of a value that has
// nothing in it: a short string without escapes, a number or literal, or an empty
// container. The length is 0 if there is none.
func simple(p []byte, hash bool) (size int, digest uint64) {
	switch c := p[0]; {
	case isScalar[c]:
		size = scalarLen(p)
		if hash {
			digest = mix(tagScalar, xxhash.Sum64(p[:size]))
		}
		return size, digest
	case c == '"':
		text, ok := shortString(p)
		if !ok {
			return 0, 0
		}
		if hash {
			digest = mix(tagString, xxhash.Sum64(text))
		}
		return len(text) + 2, digest
	case (c == '[' || c == '{') && len(p) > 1 && p[1] == closing(c):
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

// shortString returns the string that p begins with if it is short and stands
// for itself: ASCII without escapes.
func shortString(p []byte) (text []byte, ok bool) {
	p = p[1:]
	for i, c := range p[:min(len(p), maxShort)] {
		switch {
		case c == '"':
			return p[:i], true
		case c == '\\' || c >= 0x80:
			return nil, false
		}
	}
	return nil, false
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
