package prefix

// state is what the parser expects next.
type state uint8

const (
	stateStart state = iota
	stateKeyOrEnd
	stateKey
	stateColon
	stateValueOrEnd
	stateValue
	stateAfter
	// stateString and stateScalar are within a value that is read.
	stateString
	stateScalar
	// stateSkipString and stateSkip are within one that is not.
	stateSkipString
	stateSkip
	// stateDone is behind the root object, stateFail behind an error.
	stateDone
	stateFail
)

// scan reads the next bytes of the body.
func (s *Scanner) scan(p []byte) {
	for i := 0; i < len(p); {
		switch s.state {
		case stateAfter:
			i += s.after(p[i:])
		case stateKey, stateKeyOrEnd:
			i += s.key(p[i:])
		case stateColon:
			i += s.colon(p[i:])
		case stateValue, stateValueOrEnd:
			i += s.element(p[i:])
		case stateString:
			i += s.readString(p[i:])
		case stateScalar:
			i += s.readScalar(p[i:])
		case stateSkipString:
			i += s.skipString(p[i:])
		case stateSkip:
			i += s.skipContainer(p[i:])
		case stateStart:
			i += s.start(p[i])
		case stateDone, stateFail:
			return
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// spaces returns the length of the white space that p begins with.
func spaces(p []byte) int {
	for i, c := range p {
		if !isSpace(c) {
			return i
		}
	}
	return len(p)
}

// start reads what may stand in front of the root object: a byte order mark
// and white space.
func (s *Scanner) start(c byte) int {
	const mark, seen = "\xEF\xBB\xBF", 3
	switch {
	case s.bom < seen && c == mark[s.bom]:
		s.bom++
	case s.bom != 0 && s.bom != seen:
		s.state = stateFail
	case isSpace(c):
		s.bom = seen
	case c == '{':
		s.push(viewSkip, false, false)
	default:
		s.state = stateFail
	}
	return 1
}

// fail ends the reading at a byte that does not belong where it is.
func (s *Scanner) fail() int {
	s.state = stateFail
	return 1
}

// colon reads what follows a name.
func (s *Scanner) colon(p []byte) int {
	switch {
	case p[0] == ':':
		s.state = stateValue
		return 1
	case isSpace(p[0]):
		return spaces(p)
	}
	return s.fail()
}

// element reads a value, or the end of an array that is empty.
func (s *Scanner) element(p []byte) int {
	c := p[0]
	switch {
	case isSpace(c):
		return spaces(p)
	case c == ']' && s.state == stateValueOrEnd:
		s.pop()
		return 1
	}
	if n := s.elements(p); n > 0 {
		return n
	}
	return s.value(p)
}

// after reads what follows a value.
func (s *Scanner) after(p []byte) int {
	f := s.top()
	switch c := p[0]; {
	case c == ',' && f.array:
		if s.nextElement(f); s.state == stateValue && len(p) > 1 {
			return 1 + s.element(p[1:])
		}
	case c == ',':
		if s.state = stateKey; len(p) > 1 {
			return 1 + s.key(p[1:])
		}
	case c == ']' && f.array, c == '}' && !f.array:
		s.pop()
	case isSpace(c):
		return spaces(p)
	default:
		return s.fail()
	}
	return 1
}

// nextElement prepares for another element of an array. When nothing in the
// array can matter any more, its rest is skipped as a whole.
func (s *Scanner) nextElement(f *frame) {
	s.state = stateValue
	switch {
	case f.hash:
		s.view = f.elem
	case f.tokens && !s.full():
		s.view = viewIDs
	case f.firstOnly, s.full():
		s.state, s.skipDepth, s.skipHash = stateSkip, 1, false
		s.depth--
	default:
		s.view = f.elem
	}
}

// full reports whether the slot has all the text it needs.
func (s *Scanner) full() bool { return s.slot.cur.chars >= s.limit }

func (s *Scanner) top() *frame { return &s.frames[s.depth-1] }

// push opens a container that is looked into.
func (s *Scanner) push(v view, array, hash bool) *frame {
	f := &s.frames[s.depth]
	s.depth++
	f.view, f.array, f.hash, f.cand = v, array, hash, noCand
	f.drop, f.firstOnly, f.tokens, f.names = false, false, false, false
	f.media, f.images = false, 0
	f.sum, f.members = 0, len(s.members)
	s.state = stateKeyOrEnd
	if array {
		f.sum = tagArray
		s.state = stateValueOrEnd
	}
	if array || v == viewHash {
		return f
	}
	f.start, f.base = len(s.slot.buf), s.slot.cur
	for i := range f.cands {
		f.cands[i].set = false
	}
	f.typ.reset()
	f.least.reset()
	return f
}

// pop closes the innermost container.
func (s *Scanner) pop() {
	f := s.top()
	digest := s.digestOf(f)
	switch {
	case f.tokens:
		s.endPiece()
	case !f.array:
		s.settle(f, digest)
	}
	s.depth--
	s.valueEnd(digest)
}

// valueEnd goes on behind a value, whose digest is given if one was needed.
func (s *Scanner) valueEnd(digest uint64) {
	s.state = stateAfter
	if s.depth == 0 {
		s.state = stateDone
		return
	}
	f := s.top()
	if f.array {
		if f.hash {
			f.sum = mix(f.sum, digest)
		}
		return
	}
	if f.hash && !f.drop {
		s.addMember(f, member{f.name, digest})
	}
	if f.media {
		s.endMedia(f, digest)
	}
	s.endCand(f)
}
