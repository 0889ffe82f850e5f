package trace

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// wekaPart is a session of Weka's traces of coding agents (a line), or a
// sub-agent among the requests of one.
type wekaPart struct {
	ID        string           `json:"id"`
	BlockSize int              `json:"block_size"`
	Scope     string           `json:"hash_id_scope"`
	Tools     int              `json:"tool_tokens"`
	System    int              `json:"system_tokens"`
	Requests  []jsontext.Value `json:"requests"`
}

// wekaRequest is one of the requests of a part. A sub-agent stands among them,
// with requests of its own, whose times begin with it.
type wekaRequest struct {
	T        jsontext.Value  `json:"t"`
	Model    string          `json:"model"`
	In       *int            `json:"in"`
	Out      *int            `json:"out"`
	IDs      []uint64        `json:"hash_ids"`
	Requests *jsontext.Value `json:"requests"`
}

// maxNesting is how deep sub-agents may have sub-agents.
const maxNesting = 8

// wekaReader reads sessions. Ids compare within a session only, so they are made
// ids of the session; but what agents of the same model begin with, tools and system
// prompt, is counted as the same text where the lengths of both are equal.
type wekaReader struct {
	builder
	limits    Limits
	sessions  map[string]bool
	blockSize int
	session   string
}

func readWeka(in *input, o Options, b builder) error {
	w := &wekaReader{builder: b, limits: o.Limits, sessions: make(map[string]bool)}
	err := in.lines(func(_ place, line []byte) error {
		var s wekaPart
		if err := decode(line, &s); err != nil {
			return err
		}
		if err := w.begin(s); err != nil {
			return err
		}
		return w.part(s, 0, 0)
	})
	if err != nil {
		return err
	}
	b.granularity(w.blockSize)
	b.note("tools and system prompt of equal lengths are counted as the same for a model: the trace has no ids across sessions")
	return nil
}

// begin checks a session's own members.
func (w *wekaReader) begin(s wekaPart) error {
	switch {
	case s.ID == "":
		return missing("id")
	case len(s.ID) > maxName:
		return fmt.Errorf("id of %d bytes: want at most %d", len(s.ID), maxName)
	case w.sessions[s.ID]:
		return fmt.Errorf("session %s comes twice", shown(s.ID))
	case len(w.sessions) == w.limits.Requests:
		return fmt.Errorf("one session more than the bound of %d", w.limits.Requests)
	case s.Scope != "" && s.Scope != "local":
		return fmt.Errorf("hash_id_scope %s: want local", shown(s.Scope))
	case s.BlockSize < 1 || s.BlockSize > MaxBlockTokens:
		return fmt.Errorf("block_size %d: want 1 to %d", s.BlockSize, MaxBlockTokens)
	case w.blockSize != 0 && s.BlockSize != w.blockSize:
		return fmt.Errorf("block_size %d: the sessions before have %d", s.BlockSize, w.blockSize)
	}
	w.sessions[s.ID] = true
	w.session, w.blockSize = s.ID, s.BlockSize
	return nil
}

// part adds the requests of a session or a sub-agent that begins at a time of
// the session.
func (w *wekaReader) part(p wekaPart, start time.Duration, nesting int) error {
	for _, n := range [...]struct {
		member string
		tokens int
	}{{"tool_tokens", p.Tools}, {"system_tokens", p.System}} {
		if n.tokens < 0 || n.tokens > MaxTokens {
			return fmt.Errorf("%s %d: want 0 to %d", n.member, n.tokens, MaxTokens)
		}
	}
	var beginning []uint64
	for i, value := range p.Requests {
		first, err := w.request(p, beginning, value, start, nesting)
		if err != nil {
			return fmt.Errorf("requests/%d: %w", i, err)
		}
		if beginning == nil {
			beginning = first
		}
	}
	return nil
}

// request adds a request and returns its ids. beginning are those of the part's
// first request.
func (w *wekaReader) request(p wekaPart, beginning []uint64, value jsontext.Value, start time.Duration, nesting int) ([]uint64, error) {
	var q wekaRequest
	if err := decode(value, &q); err != nil {
		return nil, err
	}
	at, err := timeOf("t", q.T, time.Second)
	if err != nil {
		return nil, err
	}
	if at += start; at > maxTime {
		return nil, fmt.Errorf("t of %v in the session: want at most %v", at, maxTime)
	}
	switch {
	case q.Requests != nil:
		return nil, w.subAgent(value, at, nesting+1)
	case q.In == nil:
		return nil, missing("in")
	case q.Out == nil:
		return nil, missing("out")
	case *q.In < 0 || *q.In > MaxTokens:
		return nil, fmt.Errorf("in %d: want 0 to %d", *q.In, MaxTokens)
	}
	r := record{at: at, input: *q.In, output: *q.Out, session: w.session, model: q.Model}
	if r.pieces, err = blocksOf("hash_ids", q.IDs, w.blockSize, r.input); err != nil {
		return nil, err
	}
	if beginning == nil {
		beginning = q.IDs
	}
	w.scope(r.pieces, p, beginning)
	return q.IDs, w.add(r)
}

func (w *wekaReader) subAgent(value jsontext.Value, at time.Duration, nesting int) error {
	if nesting > maxNesting {
		return fmt.Errorf("sub-agents nested deeper than %d", maxNesting)
	}
	var p wekaPart
	if err := decode(value, &p); err != nil {
		return err
	}
	return w.part(p, at, nesting)
}

// scope makes the ids of pieces ids of the session, and those of the whole
// blocks of tools and system prompt ids of these. A request that does not begin as the
// part's first does has some other system prompt, which is the session's own.
func (w *wekaReader) scope(pieces []piece, p wekaPart, beginning []uint64) {
	shared, prompt := 0, xxhash.Sum64String("tools and system prompt")
	for shared < min(len(pieces), len(beginning), (p.Tools+p.System)/w.blockSize) && pieces[shared].id == beginning[shared] {
		shared++
	}
	prompt = link(prompt, uint64(p.Tools), p.System, 0)
	session := xxhash.Sum64String(w.session)
	for i := range pieces {
		if i < shared {
			pieces[i].id = scoped(prompt, uint64(i))
		} else {
			pieces[i].id = scoped(session, pieces[i].id)
		}
	}
}

func scoped(scope, id uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], scope)
	binary.LittleEndian.PutUint64(b[8:], id)
	return xxhash.Sum64(b[:])
}
