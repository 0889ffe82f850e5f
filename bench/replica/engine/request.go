package engine

// Request is one request to a [Scheduler], and what became of it. The exported
// fields must not change after Submit. A request is submitted once.
type Request struct {
	// PromptTokens and OutputTokens are the lengths, each at least 1. The engine
	// stops after OutputTokens, as if the model had ended there.
	PromptTokens, OutputTokens int
	// Blocks holds a chained hash for each full block (see [Prompt]). It may be
	// shorter than the prompt: the rest is never shared. It may go on into the
	// answer: those blocks can be hit from the request's end on, but for one that
	// the last token fills, whose KV is not computed. Hashes of blocks that are
	// not full are ignored.
	Blocks []uint64

	state     State
	cached    int // prompt tokens found in the cache at admission
	computed  int // prompt tokens whose KV is there
	chunk     int // prompt tokens in the step in progress
	generated int
	published int // blocks that can be hit
	held      []blockID
}

// State is where a request is.
type State uint8

// The states, in their order. What waits, is prefilled or decodes can be canceled.
const (
	Unsubmitted State = iota
	Waiting           // in the queue
	Prefilling        // admitted; its KV is reserved
	Decoding          // has its first token
	Finished          // has its last token
	Canceled
)

// State returns where the request is.
func (r *Request) State() State { return r.state }

// Cached returns how many tokens of the prompt were found in the cache. It is
// known from the admission on.
func (r *Request) Cached() int { return r.cached }

// Generated returns the number of tokens of the answer so far.
func (r *Request) Generated() int { return r.generated }

// Uncomputed returns the number of tokens of the prompt that are still to be
// prefilled, those in the step in progress included. Before admission that is the
// whole prompt.
func (r *Request) Uncomputed() int { return r.PromptTokens - r.computed }

// hitable returns the hashes of the blocks that lie within the first tokens.
func (r *Request) hitable(tokens, blockTokens int) []uint64 {
	return r.Blocks[:min(len(r.Blocks), tokens/blockTokens)]
}
