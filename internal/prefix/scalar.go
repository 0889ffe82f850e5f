package prefix

// isScalar has the bytes that numbers and literals are made of. Which of them
// make sense is left to the model server: Python's NaN is no reason to fail.
var isScalar = func() (t [256]bool) {
	for _, c := range []byte("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// isNumber reports whether a scalar that begins with c is a number.
func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// scalarLen returns the length of the number or literal that p begins with.
func scalarLen(p []byte) int {
	for i, c := range p {
		if !isScalar[c] {
			return i
		}
	}
	return len(p)
}

// beginScalar begins a number or a literal.
func (s *Scanner) beginScalar(c byte) {
	f := s.top()
	s.state, s.sink, s.hashLeft, s.hashed = stateScalar, 0, maxInt, false
	number := isNumber(c)
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
	}
}

// readScalar reads on to the end of a number or a literal.
func (s *Scanner) readScalar(p []byte) int {
	n := scalarLen(p)
	if n < len(p) {
		s.endScalar(p[:n])
	} else if s.sink != 0 {
		s.emit(p)
	}
	return n
}

// endScalar goes on behind a number or a literal that ends with p.
func (s *Scanner) endScalar(p []byte) {
	var digest uint64
	if s.sink&sinkHash != 0 {
		digest = mix(tagScalar, s.digest(p))
	}
	if s.sink&sinkText != 0 {
		s.slot.write(p, s.limit)
	}
	s.sink = 0
	s.valueEnd(digest)
}
