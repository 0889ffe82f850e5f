package prefix

import (
	"errors"
	"io"
)

// Finish ends the body and returns what it begins with. complete is false when
// the body was cut off on its way, so that the text so far is to be taken.
func (s *Scanner) Finish(complete bool) Result {
	if s.enc == gzipped && s.needs {
		complete = s.inflate(complete)
	}
	s.kind = s.conclude(complete)
	r := Result{API: s.api, Kind: s.kind}
	s.identify(&r)
	if s.kind != None {
		r.Chars = s.chars
		h := root(&s.sum, s.kind, r.Tenant, r.CacheSalt, r.Model, r.Adapter)
		r.Key, s.levels = chain(&s.sum, h, s.text, s.kind, s.levels)
		r.Levels = s.levels
	}
	r.Notes = s.notes
	return r
}

// inflate reads a compressed body and returns whether it was complete. A body
// that is no gzip is read as it came.
func (s *Scanner) inflate(complete bool) bool {
	if len(s.inflater.in) == 0 {
		return complete
	}
	more, err := s.inflater.run(s.opts.MaxInflate, s.read)
	cut := !complete || s.inflater.cut
	switch {
	case err != nil && !(cut && errors.Is(err, io.ErrUnexpectedEOF)):
		s.notes |= NoteGzipBad
		s.enc = unreadable
	case more || s.inflater.cut:
		s.notes |= NoteInflateCut
	}
	return complete && !more && !s.inflater.cut
}

// conclude decides what the key is made from and puts that into s.text.
func (s *Scanner) conclude(complete bool) Kind {
	if !s.needs {
		return None
	}
	if !complete {
		s.notes |= NoteCut
	}
	switch {
	case s.enc == unreadable:
		if s.notes&NoteGzipBad == 0 {
			s.notes |= NoteEncoding
		}
		return s.rawKind(s.wire)
	case s.api == Invocations:
		return s.rawKind(s.raw)
	}
	if !complete && s.depth > 0 {
		s.cut()
	}
	if s.state != stateDone {
		kind := s.rawKind(s.raw)
		if s.api != Other && kind == Raw {
			s.notes |= NoteRawFallback
		}
		return kind
	}
	return s.textKind()
}

func (s *Scanner) rawKind(body []byte) Kind {
	s.text, s.chars = body, len(body)
	if len(body) == 0 {
		return None
	}
	return Raw
}

// textKind joins the texts of the slots and cuts them at the prefix length.
func (s *Scanner) textKind() Kind {
	var all *slot
	for i := range s.slots {
		t := &s.slots[i]
		switch {
		case !t.cur.any:
		case all == nil:
			all = t
		default:
			s.join(all, t)
		}
	}
	if all == nil {
		return None
	}
	s.text, s.chars = all.buf, all.cur.chars
	if s.chars > s.opts.PrefixLength {
		n, chars := advance(all.buf, s.opts.PrefixLength)
		s.text, s.chars = all.buf[:n], chars
	}
	return Text
}

// join appends the text of u to that of t.
func (s *Scanner) join(t, u *slot) {
	t.fresh = true
	if room := t.open(s.limit); room > 0 {
		n, chars := advance(u.buf, room)
		t.buf = append(t.buf, u.buf[:n]...)
		t.cur.chars += chars
	}
}

// cut closes everything that is open where the body was cut off.
func (s *Scanner) cut() {
	switch s.state {
	case stateFail, stateDone:
		return
	case stateString, stateSkipString:
		s.cutString()
	case stateScalar:
		s.endScalar(nil)
	case stateSkip:
		s.valueEnd(mix(tagDeep, s.digest(nil)))
	case stateColon, stateValue:
		s.endOpenCand()
	}
	for s.depth > 0 {
		s.pop()
	}
}

// cutString ends a string in its middle, without a character that was begun. Of
// a field or a name that says nothing.
func (s *Scanner) cutString() {
	s.out -= incomplete(s.buf[:s.out])
	s.high = 0
	switch {
	case s.sink&sinkName != 0:
		s.sink = 0
	case s.sink&sinkField != 0:
		s.sink = 0
		s.valueEnd(0)
	case s.sink&sinkType != 0:
		s.top().typ.reset()
		s.out = 0
		s.endString()
	default:
		s.endString()
	}
}

// endOpenCand ends a candidate whose value did not begin.
func (s *Scanner) endOpenCand() {
	if f := s.top(); !f.array {
		s.endCand(f)
	}
}

// identify fills in for whom and on what the request is.
func (s *Scanner) identify(r *Result) {
	if s.kind == Raw {
		for i := range s.fields {
			s.fields[i].reset()
		}
	}
	s.identifyTenant(r)
	s.identifyModel(r)
	r.CacheSalt = s.fields[fieldSalt].text()
	r.Adapter = s.fields[fieldLora].text()
	if r.Adapter == "" {
		r.Adapter = s.fields[fieldAdapter].text()
	}
	for i := range s.fields {
		if i != fieldTenant && s.fields[i].set && s.fields[i].over {
			s.notes |= NoteLongName
		}
	}
}

func (s *Scanner) identifyTenant(r *Result) {
	if h := s.head.TenantHeader; h != "" {
		if ValidTenant(h) {
			r.Tenant, r.TenantSource = h, SourceHeader
			return
		}
		s.notes |= NoteTenantInvalid
	}
	f := &s.fields[fieldTenant]
	switch key := f.text(); {
	case f.invalid || key != "" && !ValidTenant(key):
		s.notes |= NoteTenantInvalid
	case key != "":
		r.Tenant, r.TenantSource = key, SourcePromptCacheKey
	}
}

func (s *Scanner) identifyModel(r *Result) {
	if r.Model = s.fields[fieldModel].text(); r.Model != "" {
		r.ModelSource = SourceBody
		return
	}
	if s.pathModel != "" {
		var long bool
		if r.Model, long = bound(s.pathModel); long {
			s.notes |= NoteLongName
		}
		r.ModelSource = SourcePath
	}
}

// Text returns what the key of the last result covers: canonical text, in which
// a marker shows as <type>, or the first bytes of a raw body. It is for
// explanations to people who may see prompts; it must not be logged.
func (s *Scanner) Text() string {
	if s.kind == Text {
		return string(appendVisible(nil, s.text))
	}
	return string(s.text)
}
