package prefix

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// key reads the name of a member.
func (s *Scanner) key(p []byte) int {
	rest := p[1:min(len(p), 1+len(s.name.buf))]
	if n := bytes.IndexByte(rest, '"'); n >= 0 && isPlain(rest[:n]) {
		s.state = stateColon
		s.member(rest[:n], s.nameHash(rest[:n]))
		return n + 2
	}
	s.name.reset()
	s.beginString(sinkName|s.hashSink(), maxInt)
	return 1
}

// isPlain reports whether a string stands for itself: ASCII without escapes.
func isPlain(p []byte) bool {
	for _, c := range p {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

func (s *Scanner) hashSink() sink {
	if s.top().hash {
		return sinkHash
	}
	return 0
}

func (s *Scanner) nameHash(name []byte) uint64 {
	if s.top().hash {
		return xxhash.Sum64(name)
	}
	return 0
}

// member finds out what the value behind a name means.
func (s *Scanner) member(name []byte, hash uint64) {
	f := s.top()
	s.view = viewSkip
	if f.hash {
		s.view = viewHash
		f.name, f.drop = hash, string(name) == "cache_control"
		if f.drop {
			s.view = viewSkip
			return
		}
	}
	switch {
	case s.depth == 1:
		s.rootMember(name)
	case f.view == viewMessage:
		s.messageMember(f, name)
	case f.view == viewItem:
		s.itemMember(f, name)
	case f.view == viewContent:
		s.partMember(f, name)
	case f.view == viewParameters && string(name) == "adapter_id":
		s.beginField(fieldAdapter)
	}
}

func (s *Scanner) rootMember(name []byte) {
	for _, m := range s.sources {
		if string(name) == m.name {
			s.slot = &s.slots[m.slot]
			s.slot.reset()
			s.view = m.view
			return
		}
	}
	if len(s.sources) == 0 {
		return
	}
	if i := rootField(name); i >= 0 {
		s.beginField(i)
	} else if s.api == Generate && string(name) == "parameters" {
		s.fields[fieldAdapter].reset()
		s.view = viewParameters
	}
}

func (s *Scanner) beginField(i int) {
	s.field = &s.fields[i]
	s.field.reset()
	s.view = viewField
}

func (s *Scanner) messageMember(f *frame, name []byte) {
	if string(name) == "content" || s.api == Gemini && string(name) == "parts" {
		s.view = viewContent
		s.beginCand(f, candContent)
	}
}

func (s *Scanner) itemMember(f *frame, name []byte) {
	switch string(name) {
	case "content":
		s.view = viewContent
		s.beginCand(f, candContent)
	case "output":
		s.view = viewContent
		s.beginCand(f, candOutput)
	case "text":
		s.view = viewText
		s.beginCand(f, candText)
	case "type":
		s.view = viewType
		f.typ.reset()
	}
}

func (s *Scanner) partMember(f *frame, name []byte) {
	switch string(name) {
	case "type":
		s.view = viewType
		f.typ.reset()
		return
	case "text":
		s.view = viewText
		s.beginCand(f, candText)
	case "refusal":
		s.view = viewText
		s.beginCand(f, candRefusal)
	case "content":
		s.view = viewContent
		s.beginCand(f, candContent)
	case "toolResult":
		s.view = viewMessage
		s.beginCand(f, candOutput)
	}
	name = name[:min(len(name), len(f.least.buf))]
	if !f.names || bytes.Compare(name, f.least.bytes()) < 0 {
		f.least.reset()
		f.least.append(name)
		f.names = true
	}
}

// value begins a value at its first byte.
func (s *Scanner) value(c byte) int {
	switch {
	case c == '"':
		s.stringValue()
		return 1
	case c == '{' || c == '[':
		return s.container(c == '[')
	case isScalar[c]:
		s.beginScalar(c)
		return 0
	}
	s.state = stateFail
	return 1
}

// stringValue begins a string according to what it means here.
func (s *Scanner) stringValue() {
	f := s.top()
	f.done = true
	to, limit := s.hashSink(), maxInt
	if f.drop {
		to = 0
	}
	switch s.view {
	case viewField:
		to |= sinkField
	case viewType:
		to |= sinkType
	case viewText, viewContent, viewItems, viewPrompt, viewPromptList:
		s.beginPiece()
		to |= sinkText
		limit = textDigestBytes
	case viewItem:
		if f.array {
			s.beginPiece()
			to |= sinkText
		}
	}
	s.beginString(to, limit)
}

// container begins an object or an array. It returns 0 when the bracket is left
// to what skips it.
func (s *Scanner) container(array bool) int {
	f := s.top()
	hash := f.hash && !f.drop
	f.done = true
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
		return 0
	}
	first := v == viewPrompt || v == viewPromptList || v == viewField
	s.push(v, array, hash || v == viewContent && !array)
	if array {
		g := s.top()
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
	if f.hash && !f.drop {
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
