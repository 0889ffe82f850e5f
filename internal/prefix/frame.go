package prefix

// MaxDepth is how many levels of nesting are looked into; the root object is
// the first. Deeper containers are only skipped.
const MaxDepth = 32

// Candidate texts of an object; which of them counts is known at its end.
const (
	candText = iota
	candRefusal
	candContent
	candOutput
	numCands
	noCand = -1
)

// candidate is a text that its object may turn out to mean: buf[start:end] of
// the slot, and the branch behind it.
type candidate struct {
	start, end int
	after      branch
	set        bool
}

// frame is an open container that is looked into.
type frame struct {
	// view is what the container means; of an array, elem what its elements do.
	view, elem view
	array      bool
	// hash: a digest of this container is needed, by itself or by one around it.
	hash bool
	// drop: the member that is being read does not enter the digest.
	drop bool
	// media: the member that is being read is images beside the text.
	media bool
	// firstOnly: the array's first element decides.
	firstOnly bool
	// tokens: the array is a list of token ids.
	tokens bool
	// cand is the candidate that the member being read fills, or noCand.
	cand int8
	// names: at least one member was seen that can name an untyped part. Those
	// that are its text need not, as it is never named then.
	names bool

	// name is the hash of the name of the member that is being read; sum is
	// the digest so far, and members where this object's ones begin.
	name, sum uint64
	members   int
	// images is the digest of the images beside the content, or 0.
	images uint64

	// start and base are the slot's state when the object began.
	start int
	base  branch
	cands [numCands]candidate

	// typ is the "type" of the object; least its alphabetically first member.
	typ, least label
}

// label is a short string; of a longer one the beginning is kept.
type label struct {
	buf  [64]byte
	n    int
	over bool
}

func (l *label) reset() { l.n, l.over = 0, false }

func (l *label) append(p []byte) {
	if l.over {
		return
	}
	n := len(p)
	if n > len(l.buf)-l.n {
		l.over = true
		n = len(l.buf) - l.n
		for n > 0 && !isStart(p[n]) {
			n--
		}
	}
	l.n += copy(l.buf[l.n:], p[:n])
}

// shorten returns what a label keeps of p, in l if that is not p itself.
func (l *label) shorten(p []byte) []byte {
	if len(p) <= len(l.buf) {
		return p
	}
	l.append(p)
	return l.bytes()
}

func (l *label) bytes() []byte { return l.buf[:l.n] }

// beginCand directs text to a candidate of f, which replaces its former value.
// Between members the slot's branch is always f.base.
func (s *Scanner) beginCand(f *frame, c int8) {
	t := s.slot
	if old := f.cands[c]; old.set {
		size := old.end - old.start
		t.buf = append(t.buf[:old.start], t.buf[old.end:]...)
		for i := range f.cands {
			if f.cands[i].set && f.cands[i].start >= old.end {
				f.cands[i].start -= size
				f.cands[i].end -= size
			}
		}
	}
	f.cand = c
	f.cands[c] = candidate{start: len(t.buf), set: true}
}

// endCand ends the candidate that is being filled.
func (s *Scanner) endCand(f *frame) {
	if f.cand == noCand {
		return
	}
	c := &f.cands[f.cand]
	c.end, c.after = len(s.slot.buf), s.slot.cur
	s.slot.cur = f.base
	f.cand = noCand
}

// take makes candidate c the text of f, or nothing if it is not set.
func (s *Scanner) take(f *frame, c int) {
	t := s.slot
	if c == noCand || !f.cands[c].set {
		t.buf, t.cur = t.buf[:f.start], f.base
		return
	}
	chosen := &f.cands[c]
	n := chosen.end - chosen.start
	if chosen.start != f.start {
		copy(t.buf[f.start:], t.buf[chosen.start:chosen.end])
	}
	t.buf, t.cur = t.buf[:f.start+n], chosen.after
}

// settle decides at the end of the object f what its text is.
func (s *Scanner) settle(f *frame, digest uint64) {
	switch f.view {
	case viewMessage:
		s.take(f, candContent)
		if f.images != 0 {
			s.slot.mark([]byte("images"), f.images, s.limit)
		}
	case viewItem:
		s.take(f, itemCand(&f.typ))
	case viewContent:
		s.settlePart(f, digest)
	}
}

// itemCand returns the candidate that an item of the responses API means.
func itemCand(typ *label) int {
	switch name := typ.bytes(); {
	case typ.over:
		return noCand
	case len(name) == 0 || string(name) == "message":
		return candContent
	case hasSuffix(name, "_output"):
		return candOutput
	case roleOf(name) == partText:
		return candText
	}
	return noCand
}

func (s *Scanner) settlePart(f *frame, digest uint64) {
	if f.typ.n == 0 {
		s.settleUntyped(f, digest)
		return
	}
	role := partMarker
	if !f.typ.over {
		role = roleOf(f.typ.bytes())
	}
	switch role {
	case partText:
		s.take(f, candText)
	case partRefusal:
		s.take(f, candRefusal)
	case partResult:
		s.take(f, candContent)
	case partSilent:
		s.take(f, noCand)
	case partMarker:
		s.take(f, noCand)
		s.slot.mark(f.typ.bytes(), digest, s.limit)
	}
}

// settleUntyped settles a part without a type: its text if it has one, else
// what it contains, else a marker that is called after its first member.
func (s *Scanner) settleUntyped(f *frame, digest uint64) {
	c := noCand
	switch {
	case f.cands[candText].set:
		c = candText
	case f.cands[candContent].set:
		c = candContent
	case f.cands[candOutput].set:
		c = candOutput
	}
	s.take(f, c)
	if c == noCand && f.names && !silentMember(f.least.bytes()) {
		s.slot.mark(f.least.bytes(), digest, s.limit)
	}
}
