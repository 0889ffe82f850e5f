package prefix

import (
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Defaults of [Options].
const (
	DefaultPrefixLength = 4096
	DefaultMaxInflate   = 4 << 20
)

// Options bound what is read.
type Options struct {
	// PrefixLength is how many characters of the text (bytes of a raw body) the
	// key covers at most, 1 to 1<<24. 0 means DefaultPrefixLength.
	PrefixLength int
	// MaxInflate is how many bytes of a decompressed body are read; what is
	// behind counts as cut off. Read are also at most 64 KiB and 100 times as many
	// bytes as the compressed body has, and of that at most 64 KiB and a quarter of
	// MaxInflate. 0 means DefaultMaxInflate.
	MaxInflate int64
}

func (o Options) withDefaults() Options {
	if o.PrefixLength <= 0 {
		o.PrefixLength = DefaultPrefixLength
	}
	o.PrefixLength = min(o.PrefixLength, 1<<24)
	if o.MaxInflate <= 0 {
		o.MaxInflate = DefaultMaxInflate
	}
	return o
}

// Scanner reads one request at a time: [Scanner.Reset], then [Scanner.Feed] for
// each chunk of the body, then [Scanner.Finish]. The zero Scanner must be reset
// first. It is not for use by several goroutines at once.
type Scanner struct {
	head      Head
	opts      Options
	api       API
	pathModel string
	needs     bool
	enc       encoding
	notes     Notes
	sources   []textMember

	// limit is how many characters a slot keeps: the prefix length, but
	// enough to recognise a leading piece that is to be skipped.
	limit int
	// wire and raw are the first bytes of the body, as it came and decompressed.
	wire, raw []byte
	inflater  inflater

	lexer

	slots  [numSlots]slot
	slot   *slot
	fields [numFields]field
	// text is what the key of the last result covers, chars its length.
	text   []byte
	chars  int
	kind   Kind
	levels []uint64
}

// Reset prepares the scanner for another request.
func (s *Scanner) Reset(h Head, o Options) {
	s.head, s.opts = h, o.withDefaults()
	s.api, s.pathModel = Classify(h.Path)
	s.needs = s.api == Invocations || !isUpload(h.ContentType)
	s.enc = parseEncoding(h.ContentEncoding)
	s.notes = 0
	s.sources = textMembers[s.api]
	s.limit = max(s.opts.PrefixLength, 2*len(billingHeader))
	s.wire, s.raw = s.wire[:0], s.raw[:0]
	s.inflater.reset()
	s.lexer.reset()
	for i := range s.slots {
		s.slots[i].reset()
	}
	s.slot = &s.slots[0]
	for i := range s.fields {
		s.fields[i].reset()
	}
	s.text, s.chars, s.kind, s.levels = nil, 0, None, s.levels[:0]
}

// Feed takes the next chunk of the body. The chunk is not kept.
func (s *Scanner) Feed(chunk []byte) {
	if !s.needs || len(chunk) == 0 {
		return
	}
	switch s.enc {
	case plain:
		s.read(chunk)
	case gzipped:
		s.wire = keep(s.wire, chunk, s.opts.PrefixLength)
		s.inflater.feed(chunk, s.opts.MaxInflate)
	case unreadable:
		s.wire = keep(s.wire, chunk, s.opts.PrefixLength)
	}
}

// read takes bytes of the readable body.
func (s *Scanner) read(chunk []byte) {
	s.raw = keep(s.raw, chunk, s.opts.PrefixLength)
	if s.api != Invocations {
		s.scan(chunk)
	}
}

// keep appends chunk to head as long as that is shorter than n.
func keep(head, chunk []byte, n int) []byte {
	if room := n - len(head); room > 0 {
		head = append(head, chunk[:min(room, len(chunk))]...)
	}
	return head
}

// Pool holds scanners that are not in use. The zero Pool is ready; it may be
// used by several goroutines at once.
type Pool struct{ pool sync.Pool }

// maxPooled is the largest buffer, in bytes, that a pooled scanner keeps.
const maxPooled = 1 << 20

// Get returns a scanner that is reset for the request.
func (p *Pool) Get(h Head, o Options) *Scanner {
	s, ok := p.pool.Get().(*Scanner)
	if !ok {
		s = new(Scanner)
	}
	s.Reset(h, o)
	return s
}

// Put gives a scanner back. It and the levels of its results must not be used
// any more.
func (p *Pool) Put(s *Scanner) {
	s.head, s.pathModel = Head{}, ""
	for i := range s.slots {
		trim(&s.slots[i].buf)
	}
	trim(&s.wire)
	trim(&s.raw)
	trim(&s.inflater.in)
	p.pool.Put(s)
}

func trim(b *[]byte) {
	if cap(*b) > maxPooled {
		*b = nil
	}
}

// lexer is the state of the push parser between two bytes.
type lexer struct {
	state state
	bom   uint8
	// view is what the next or current value means.
	view   view
	depth  int
	frames [MaxDepth]frame
	// members are the digested members of all open objects.
	members []member

	// skipDepth, inQuote and odd are where a skipped value is: its nesting,
	// within a string, behind an odd number of backslashes.
	skipDepth    int
	inQuote, odd bool
	skipHash     bool

	sink sink
	// hashLeft is how many bytes more of the value may enter the digest. hashed:
	// its beginning is in sum already.
	hashLeft int
	hashed   bool
	sum      xxhash.Digest
	field    *field
	name     label
	// escape is the position within an escape sequence, unit its value so far,
	// and high the first half of a surrogate pair that waits for its second.
	escape uint8
	unit   rune
	high   rune
	// buf[:out] is what was read of a string without its escapes, and not yet
	// sent on. fixed has room for as many replacement characters.
	buf   [1024]byte
	out   int
	fixed [3 * 1024]byte

	// pieceStart and first: the piece begun last is the first of its slot.
	pieceStart int
	first      bool
}

func (l *lexer) reset() {
	l.state, l.bom, l.view, l.depth = stateStart, 0, viewSkip, 0
	l.members = l.members[:0]
	l.skipDepth, l.inQuote, l.odd, l.skipHash = 0, false, false, false
	l.sink, l.escape, l.high, l.out, l.first = 0, 0, 0, 0, false
}
