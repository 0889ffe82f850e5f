package prefix

// isScalar has the bytes that numbers and literals are made of. Which of them
// make sense is left to the model server: Python's NaN is no reason to fail.
var isScalar = func() (t [256]bool) {
	for _, c := range []byte("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// beginScalar begins a number or a literal.
func (s *Scanner) beginScalar(c byte) {
	f := s.top()
	s.state, s.sink, s.hashLeft = stateScalar, 0, maxInt
	number := c == '-' || '0' <= c && c <= '9'
	switch s.view {
	case viewField:
		s.field.invalid = c != 'n'
	case viewPrompt, viewPromptList:
		if f.array && number {
			f.tokens = true
			s.beginPiece()
			s.slot.write([]byte("tok:"), s.limit)
			s.sink = sinkText
		}
	case viewIDs:
		if number {
			s.slot.write([]byte{','}, s.limit)
			s.sink = sinkText
		}
	}
	if f.hashing() {
		s.sink |= sinkHash
		s.sum.Reset()
	}
}

// readScalar reads on to the end of a number or a literal.
func (s *Scanner) readScalar(p []byte) int {
	n := 0
	for n < len(p) && isScalar[p[n]] {
		n++
	}
	if s.sink != 0 {
		s.emit(p[:n])
	}
	if n < len(p) {
		s.endScalar()
	}
	return n
}

func (s *Scanner) endScalar() {
	var digest uint64
	if s.sink&sinkHash != 0 {
		digest = mix(tagScalar, s.sum.Sum64())
	}
	s.sink = 0
	s.valueEnd(digest)
}
