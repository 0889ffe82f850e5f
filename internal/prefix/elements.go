package prefix

// elements reads elements of an array and the commas behind them, as long as they
// are simple. Anything else is left where it is.
func (s *Scanner) elements(p []byte) int {
	f := s.top()
	if !f.array {
		return 0
	}
	switch s.view {
	case viewHash:
		return s.digestRun(p)
	case viewContent, viewItem, viewMessage:
		if p[0] != '{' || len(p) > 1 && p[1] == '}' {
			return s.elementRun(f, p)
		}
	case viewIDs:
		if isNumber(p[0]) {
			return s.tokenIDs(p)
		}
		return s.elementRun(f, p)
	}
	return 0
}

// elementRun reads short texts, and what is no text whatever it means here.
func (s *Scanner) elementRun(f *frame, p []byte) (n int) {
	for n < len(p) {
		var text []byte
		size, digest := 0, uint64(0)
		switch c := p[n]; {
		case c == '[' && !f.hash:
			size = s.skipShort(p[n:])
		case s.view == viewIDs && isNumber(c):
			return n
		default:
			text, size, digest = s.simple(p[n:], f.hash)
		}
		next := n + size
		if size == 0 || next == len(p) || p[next] != ',' {
			return n
		}
		if len(text) > 0 && s.isText(f) {
			s.beginPiece()
			s.slot.write(text, s.limit)
			s.endPiece()
			if s.full() {
				s.valueEnd(digest)
				return next
			}
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
