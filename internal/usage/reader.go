package usage

import "bytes"

const (
	// MaxLine is the longest line of a stream of events that is read, in bytes; longer
	// ones are skipped.
	MaxLine = 64 << 10
	// MaxBody is the longest answer in one piece that is read, in bytes.
	MaxBody = 1 << 20
)

// Format is the form of an answer.
type Format uint8

// The formats that are read.
const (
	// JSON is an answer in one piece, application/json.
	JSON Format = iota
	// Events are server-sent events with JSON in each, text/event-stream. Every data
	// line is taken for an event of its own, as all engines write them.
	Events
)

// Outcome says what an answer told.
type Outcome uint8

// The outcomes.
const (
	// NoUsage: it tells nothing of its prompt's tokens.
	NoUsage Outcome = iota
	// Read: it tells how many tokens the prompt had and how many were cached.
	Read
	// NoCachedTokens: it tells how many tokens the prompt had, but not how many were
	// cached. vLLM and SGLang leave that out when it is none, and always unless
	// they are told to report it.
	NoCachedTokens
	// TooLarge: it, or a line of it, is longer than what is read, and the rest tells
	// nothing.
	TooLarge
	// Malformed: it is no JSON object.
	Malformed
)

// Result is what was read of an answer.
type Result struct {
	Outcome Outcome
	// PromptTokens is how many tokens the prompt had, cached ones included, and
	// CachedTokens how many of them the engine found in its cache. They mean something
	// with Read, the first also with NoCachedTokens.
	PromptTokens, CachedTokens int64
}

// Reader reads one answer. Its zero value reads one in one piece.
type Reader struct {
	format Format
	// held is the line or body as far as it has come.
	held []byte
	// skipping: the line is too long. skipped: one was.
	skipping, skipped bool
	content           bool
	result            Result
}

// NewReader returns a reader of an answer in a format.
func NewReader(f Format) *Reader { return &Reader{format: f} }

// Held is how many bytes the reader keeps: a quarter more than MaxBody at most.
func (r *Reader) Held() int { return cap(r.held) }

// Content reports whether a piece of the answer has come: text, reasoning, or a part of
// a call. Events that only open the answer are none. It is always false with JSON.
func (r *Reader) Content() bool { return r.content }

// Write reads the next piece of the answer, of which it keeps nothing but what Held
// counts.
func (r *Reader) Write(piece []byte) {
	if r.format == JSON {
		r.hold(piece, MaxBody)
		return
	}
	for len(piece) > 0 {
		line, rest, ended := bytes.Cut(piece, newline)
		switch {
		case !ended:
			r.hold(line, MaxLine)
		case len(r.held) == 0 && !r.skipping && len(line) <= MaxLine:
			r.line(line) // the usual case: nothing is copied
		default:
			r.hold(line, MaxLine)
			r.endLine()
		}
		piece = rest
	}
}

var newline = []byte("\n")

// hold keeps a part of a line or body, unless that is too long by now.
func (r *Reader) hold(part []byte, most int) {
	if r.skipping || len(r.held)+len(part) > most {
		r.skipping, r.skipped, r.held = true, true, nil
		return
	}
	r.held = append(r.held, part...)
}

func (r *Reader) endLine() {
	if !r.skipping {
		r.line(r.held)
	}
	r.skipping, r.held = false, r.held[:0]
}

// line reads a line of a stream of events.
func (r *Reader) line(line []byte) {
	data, ok := bytes.CutPrefix(line, dataField)
	// Most events come after the first piece of text and tell nothing: they are not
	// decoded.
	if !ok || r.content && !bytes.Contains(data, usageName) && !bytes.Contains(data, timingsName) {
		return
	}
	m, ok := decode(data)
	if !ok {
		return // [DONE], or a line of an event in several
	}
	r.content = r.content || m.hasContent()
	if found := m.usage(); found.Outcome != NoUsage {
		r.result = merge(r.result, found)
	}
}

var dataField, usageName, timingsName = []byte("data:"), []byte(`"usage"`), []byte(`"timings"`)

// Finish returns what the answer told, when its end or the last of it has come.
func (r *Reader) Finish() Result {
	defer func() { r.held = nil }()
	switch {
	case r.format == Events && len(r.held) > 0:
		r.endLine()
	case r.format == JSON && !r.skipped:
		m, ok := decode(r.held)
		if !ok {
			return Result{Outcome: Malformed}
		}
		r.result = m.usage()
	}
	if r.result.Outcome == NoUsage && r.skipped {
		return Result{Outcome: TooLarge}
	}
	return r.result
}

// merge takes the later of two usages, but none that tells less: a stream may count on
// as it goes, and Anthropic's last event may have the answer's tokens only.
func merge(before, after Result) Result {
	if before.Outcome == Read && after.Outcome != Read {
		return before
	}
	return after
}
