package prefix

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// maxShort is the longest string that is read at a glance, with its quote.
const maxShort = 64

// key reads the name of a member, or the end of an object that is empty.
func (s *Scanner) key(p []byte) int {
	f := s.top()
	switch c := p[0]; {
	case c == '"':
	case c == '}' && s.state == stateKeyOrEnd:
		s.pop()
		return 1
	case isSpace(c):
		return spaces(p)
	default:
		return s.fail()
	}
	if f.view == viewHash {
		if n := s.digestRun(p); n > 0 {
			return n
		}
	}
	if name, n := s.wholeString(p); n > 0 && len(name) <= len(s.name.buf) {
		s.state = stateColon
		s.member(name, s.nameHash(name))
		return n + s.colonValue(p[n:])
	}
	s.name.reset()
	s.beginString(sinkName|s.hashSink(), maxInt)
	return 1
}

// colonValue reads what follows a name if that is a colon and, without white
// space, the first byte of a value. It may stop anywhere.
func (s *Scanner) colonValue(p []byte) int {
	if len(p) < 2 || p[0] != ':' || isSpace(p[1]) {
		return 0
	}
	s.state = stateValue
	return 1 + s.value(p[1:])
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
			f := s.top()
			f.media = m.view == viewMedia
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
	switch {
	case string(name) == "content", s.api == Gemini && string(name) == "parts":
		s.view = viewContent
		s.beginCand(f, candContent)
	case s.api == OllamaChat && string(name) == "images":
		s.view = viewMedia
		f.media, f.images = true, 0
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
