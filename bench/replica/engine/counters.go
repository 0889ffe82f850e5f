package engine

// Counters are the gauges and the totals of an engine, those that vLLM shows.
type Counters struct {
	Running, Waiting int // requests
	// PinnedBlocks of Blocks are in use by running requests.
	PinnedBlocks, Blocks int
	// QueriedTokens of admitted prompts were looked up, HitTokens of them found.
	QueriedTokens, HitTokens int64
	// PromptTokens are those of the prompts whose prefill has ended, cached ones
	// included.
	PromptTokens, GeneratedTokens int64
	// Submitted, Finished and Canceled count requests.
	Submitted, Finished, Canceled int64
}

// Params returns what the engine was made with.
func (s *Scheduler) Params() Params { return s.params }

// Context returns the tokens of the sequences that decode.
func (s *Scheduler) Context() int { return s.context }

// Counters returns the gauges and totals now.
func (s *Scheduler) Counters() Counters {
	c := s.counters
	c.Running, c.Waiting = len(s.decoding)+len(s.prefills), len(s.waiting)
	c.PinnedBlocks, c.Blocks = s.blocks.pinned(), s.blocks.capacity
	return c
}
