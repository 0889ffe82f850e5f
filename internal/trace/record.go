package trace

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

// record is a request as a format's reader found it. Its prompt is given by
// pieces, by text, or not at all.
type record struct {
	// at is the time since some start: one of the format, or of the session.
	at time.Duration
	// input is the prompt's length in tokens. With a text it is not used.
	input, output int
	// standsFor is how many requests this is one of; 0 is 1.
	standsFor              int
	session, model, tenant string
	pieces                 []piece
	prompt                 prompt
}

// piece is a part of a prompt of which only an id is known. Equal ids of equal
// length behind equal beginnings are equal text.
type piece struct {
	id     uint64
	tokens int
}

// assembly makes a trace of records.
type assembly struct {
	trace  Trace
	limits Limits
	chunks int
	texts  textChunker
	// standFor is the sum of what all requests stand for.
	standFor int64
	see      func(text string) // nil if nobody wants to
}

func (a *assembly) granularity(blockTokens int) { a.trace.BlockTokens = blockTokens }

func (a *assembly) note(text string, args ...any) {
	a.trace.Notes = append(a.trace.Notes, fmt.Sprintf(text, args...))
}

func (a *assembly) add(r record) error {
	if len(a.trace.Requests) == a.limits.Requests {
		return fmt.Errorf("one request more than the bound of %d", a.limits.Requests)
	}
	for _, n := range [...]struct{ what, name string }{{"session", r.session}, {"model", r.model}, {"tenant", r.tenant}} {
		if len(n.name) > maxName {
			return fmt.Errorf("%s of %d bytes: want at most %d", n.what, len(n.name), maxName)
		}
	}
	for _, n := range [...]struct {
		what   string
		tokens int
	}{{"input", r.input}, {"output", r.output}} {
		if n.tokens < 0 || n.tokens > MaxTokens {
			return fmt.Errorf("%s of %d tokens: want 0 to %d", n.what, n.tokens, MaxTokens)
		}
	}
	q := Request{Arrival: r.at, Input: r.input, Output: r.output, Session: r.session, Model: r.model, Tenant: r.tenant}
	if err := a.chunk(&q, r); err != nil {
		return err
	}
	a.chunks += len(q.Chunks)
	a.standFor += int64(max(r.standsFor, 1))
	a.trace.Requests = append(a.trace.Requests, q)
	return nil
}

// chunk fills in the chunks, and the input of a text. A prompt
// is refused before its chunks could take much more than there is room for: those of a text
// take less than its line.
func (a *assembly) chunk(q *Request, r record) (err error) {
	room := a.limits.Chunks - a.chunks
	if r.prompt.given() {
		var chars int
		if q.Chunks, chars, err = a.texts.chunks(r.prompt, r.model); err != nil {
			return err
		}
		if a.see != nil && chars > 0 {
			a.see(a.texts.scanner.Text())
		}
		if q.Input = tokensOf(chars); len(q.Chunks) > room {
			return tooManyChunks(a.limits.Chunks)
		}
		return nil
	}
	tokens := 0
	for _, p := range r.pieces {
		if tokens += p.tokens; p.tokens < 0 || tokens > MaxTokens {
			return fmt.Errorf("blocks of more than %d tokens in a prompt", MaxTokens)
		}
	}
	n := tokens / ChunkTokens
	if n > room {
		return tooManyChunks(a.limits.Chunks)
	}
	if n > 0 {
		q.Chunks = appendChunks(make([]uint64, 0, n), xxhash.Sum64String(r.model), r.pieces)
	}
	return nil
}

func tooManyChunks(bound int) error {
	return fmt.Errorf("more chunks of %d tokens than the bound of %d for the whole trace", ChunkTokens, bound)
}

// finish lays out sessions and sorts the requests.
func (a *assembly) finish(f format) (Trace, error) {
	if len(a.trace.Requests) == 0 {
		return Trace{}, fmt.Errorf("%s has no request", cmp.Or(a.trace.Name, stream))
	}
	if f.sessions != nil {
		f.sessions.apply(a.trace.Requests)
		a.note("sessions begin every %v, in the order of their names: the trace does not say when they did", f.sessions.gap)
	}
	a.trace.SampleRatio = float64(len(a.trace.Requests)) / float64(a.standFor)
	a.trace.arrange()
	return a.trace, nil
}
