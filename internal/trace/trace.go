package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/prefix"
)

// The granularity of [Request.Chunks].
const (
	// CharsPerToken is the size of a token of a prompt that is given as text, a
	// rule of thumb for English and code; a real tokenizer varies.
	CharsPerToken = 4
	// ChunkTokens is the length of a chunk: one level of the router's chained key.
	ChunkTokens = prefix.LevelChars / CharsPerToken
)

// Request is one request of a trace.
type Request struct {
	// Arrival is the time since the first request of the trace.
	Arrival time.Duration
	// Input and Output are the lengths of prompt and answer in tokens, 0 to
	// MaxTokens.
	Input, Output int
	// Chunks has a hash for each whole chunk of the prompt that the trace knows.
	// It covers the model and everything before: an equal value, in any request of
	// the trace, means an equal prompt up to that chunk's end. What is behind the
	// last one (less than a chunk; all, if the trace has only lengths) is to be
	// taken for shared with nobody.
	Chunks []uint64
	// Session, Model and Tenant are "" where the trace does not say. A tenant is
	// not part of Chunks: model servers share their cache between tenants.
	Session, Model, Tenant string
}

// Trace is a sequence of requests.
type Trace struct {
	// Name is the name of the file or folder, "" for a stream.
	Name string
	// BlockTokens is the granularity that the trace has: what two prompts share
	// is known in multiples of it. It is 1 where prompts are given as text, and 0
	// where nothing is known of them.
	BlockTokens int
	// SampleRatio is the share of the requests there were that is in the trace, above
	// 0 and at most 1, which it is where the trace does not say.
	SampleRatio float64
	// Requests are in the order of their arrival; those that arrive at once are
	// in the order of the file.
	Requests []Request
	// Notes say what was left out or made up, for people.
	Notes []string
}

// arrange sorts the requests and lets the first arrive at 0.
func (t *Trace) arrange() {
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if len(t.Requests) == 0 {
		return
	}
	start := t.Requests[0].Arrival
	for i := range t.Requests {
		t.Requests[i].Arrival -= start
	}
}
