package prefix

// value reads a value from its first byte on.
func (s *Scanner) value(p []byte) int {
	switch c := p[0]; {
	case c == '"':
		return s.stringValue(p)
	case isOpening(c):
		if len(p) > 1 && p[1] == closing(c) && s.depth < MaxDepth {
			s.emptyContainer(c == '[')
			return 2
		}
		return s.container(p)
	case isScalar[c]:
		s.beginScalar(c)
		return s.readScalar(p)
	}
	return s.fail()
}

func isOpening(c byte) bool { return c == '[' || c == '{' }

// closing returns the bracket that closes c.
func closing(c byte) byte { return c + 2 }

// stringValue reads a string, a short one as a whole.
func (s *Scanner) stringValue(p []byte) int {
	to, limit := s.sinkOf(s.top())
	if text, n := s.wholeString(p); n > 0 {
		s.sink, s.hashLeft, s.hashed = to, limit, false
		s.finishString(text)
		return n
	}
	s.beginString(to, limit)
	if s.state != stateString {
		return 1
	}
	return 1 + s.readString(p[1:])
}

// sinkOf returns where a string goes according to what it means in f, and how
// much of it is digested.
func (s *Scanner) sinkOf(f *frame) (to sink, hashLimit int) {
	if f.hashing() {
		to = sinkHash
	}
	switch s.view {
	case viewField:
		to |= sinkField
	case viewType:
		to |= sinkType
	case viewText, viewContent, viewItems, viewPrompt, viewPromptList:
		s.beginPiece()
		return to | sinkText, textDigestBytes
	case viewItem:
		if f.array {
			s.beginPiece()
			to |= sinkText
		}
	}
	return to, maxInt
}

// emptyContainer reads an object or an array with nothing in it: no text,
// whatever it means here.
func (s *Scanner) emptyContainer(array bool) {
	if s.view == viewField {
		s.field.invalid = true
	}
	if array {
		s.valueEnd(tagArray)
		return
	}
	s.valueEnd(emptyObject)
}

// container begins an object or an array, or skips it.
func (s *Scanner) container(p []byte) int {
	f, array := s.top(), p[0] == '['
	hash := f.hashing()
	v, elem := s.inside(array)
	if s.view == viewField {
		s.field.invalid = true
	}
	deep := s.depth == MaxDepth
	if deep && (v != viewSkip || hash) {
		s.notes |= NoteDepth
	}
	if v == viewSkip && !hash || deep || !hash && v != viewParameters && v != viewField && s.full() {
		s.beginSkip(hash)
		return s.skipContainer(p)
	}
	first := v == viewPrompt || v == viewPromptList || v == viewField
	g := s.push(v, array, hash || v == viewContent && !array)
	if array {
		g.elem, g.firstOnly = elem, first
		s.view = elem
	}
	return 1
}

// inside returns what a container means at a place where s.view is expected,
// and what the elements mean if it is an array.
func (s *Scanner) inside(array bool) (v, elem view) {
	f := s.top()
	switch s.view {
	case viewHash:
		return viewHash, viewHash
	case viewField:
		if array && !f.array && s.field == &s.fields[fieldLora] {
			return viewField, viewField
		}
	case viewContent:
		if !array {
			return viewContent, 0
		}
		if !f.array {
			return viewContent, viewContent
		}
	case viewMessages:
		if array {
			return viewMessages, viewMessage
		}
		return viewMessage, 0
	case viewItems:
		if array {
			return viewItems, viewItem
		}
		return viewItem, 0
	case viewMessage, viewItem, viewParameters:
		if !array {
			return s.view, 0
		}
	case viewPrompt, viewPromptList:
		return s.insidePrompt(array)
	}
	if f.hashing() {
		return viewHash, viewHash
	}
	return viewSkip, 0
}

func (s *Scanner) insidePrompt(array bool) (v, elem view) {
	switch {
	case !array:
		return viewContent, 0
	case s.view == viewPrompt:
		return viewPrompt, viewPromptList
	case s.top().view == viewPrompt:
		return viewPromptList, viewPromptList
	}
	return viewSkip, 0
}
