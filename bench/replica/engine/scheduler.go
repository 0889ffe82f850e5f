package engine

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// Scheduler is one engine in virtual time. It has no clock: Begin plans a step
// and says how long it takes, and End says what it has brought; whatever is
// submitted or canceled in between counts for the next step.
//
//	for d, ok := s.Begin(0); ok; d, ok = s.Begin(0) {
//		now += d
//		for _, r := range s.End().Finished { ... }
//	}
//
// It is not safe for concurrent use.
type Scheduler struct {
	params Params
	blocks *blocks

	waiting []*Request // in the order of arrival
	// prefills are the requests that the step in progress prefills; between steps
	// only the one, if any, of which a part is missing. It comes before all that
	// wait, so there is never a second.
	prefills []*Request
	decoding []*Request
	context  int // tokens of the sequences that decode
	// stuck says that the first in the queue did not fit into the KV cache, and
	// that nothing has changed since.
	stuck bool

	report   Step
	counters Counters
}

// Step is what one step, or the steps of a leap, did. The slices are valid until
// the next Begin.
type Step struct {
	// Count is the number of engine steps, more than 1 only after a leap.
	Count int
	// Duration is the time of all of them.
	Duration time.Duration
	// PrefillTokens were computed.
	PrefillTokens int
	// Decoded got Count tokens each.
	Decoded []*Request
	// First got their first token.
	First []*Request
	// Finished are those of Decoded and First that got their last token.
	Finished []*Request
}

// NewScheduler returns an idle engine with an empty cache.
func NewScheduler(p Params) (*Scheduler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Scheduler{params: p, blocks: newBlocks(p.KVTokens / p.BlockTokens)}, nil
}

// Submit puts a request at the end of the queue. It refuses lengths below 1, a
// request that was submitted before, and one that does not fit into the whole KV
// cache.
func (s *Scheduler) Submit(r *Request) error {
	switch {
	case r.state != Unsubmitted:
		return fmt.Errorf("submit request: it was submitted before")
	case r.PromptTokens < 1 || r.OutputTokens < 1:
		return fmt.Errorf("submit request of %d prompt and %d output tokens: want 1 or more of both", r.PromptTokens, r.OutputTokens)
	case s.blocksOf(r) > s.blocks.capacity:
		return fmt.Errorf("submit request of %d prompt and %d output tokens: want at most %d in all, the KV cache",
			r.PromptTokens, r.OutputTokens, s.blocks.capacity*s.params.BlockTokens)
	}
	r.state = Waiting
	s.waiting = append(s.waiting, r)
	s.counters.Submitted++
	return nil
}

// Cancel takes a request out and frees its blocks, also in the middle of a step,
// which keeps its length. It reports whether there was something to cancel.
func (s *Scheduler) Cancel(r *Request) bool {
	switch r.state {
	case Waiting:
		s.waiting = remove(s.waiting, r)
	case Prefilling:
		s.prefills = remove(s.prefills, r)
	case Decoding:
		s.decoding = remove(s.decoding, r)
		s.context -= r.PromptTokens + r.generated
	default:
		return false
	}
	s.free(r)
	r.state = Canceled
	s.counters.Canceled++
	return true
}

func remove(list []*Request, r *Request) []*Request {
	i := slices.Index(list, r)
	return slices.Delete(list, i, i+1)
}

// Begin plans the next step and returns its length; ok is false when there is
// nothing to do. When nothing but decoding can happen it leaps: it takes as one
// all steps that begin within less than leap from now and before a request
// finishes. The result is the same as that of single steps if leap reaches no
// further than to the next Submit or Cancel. 0 is always one step.
//
// It must not be called again before End.
func (s *Scheduler) Begin(leap time.Duration) (d time.Duration, ok bool) {
	decodes := len(s.decoding)
	prefill := s.plan(s.params.StepTokens - decodes)
	if decodes+len(s.prefills) == 0 {
		return 0, false
	}
	s.report = Step{Count: 1, PrefillTokens: prefill, Decoded: s.report.Decoded[:0], First: s.report.First[:0], Finished: s.report.Finished[:0]}
	if len(s.prefills) == 0 {
		s.report.Count = s.leap(leap)
		s.report.Duration = s.params.decodeSteps(s.report.Count, decodes, s.context)
	} else {
		s.report.Duration = s.params.Step(prefill, decodes, s.context)
	}
	return s.report.Duration, true
}

// plan gives the budget to the prompt in progress and to waiting requests, and
// returns how much of it they take.
func (s *Scheduler) plan(budget int) (planned int) {
	for _, r := range s.prefills {
		r.chunk = min(budget-planned, r.Uncomputed())
		planned += r.chunk
	}
	for planned < budget && len(s.waiting) > 0 && s.admit(s.waiting[0]) {
		r := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		r.chunk = min(budget-planned, r.Uncomputed())
		planned += r.chunk
		s.prefills = append(s.prefills, r)
	}
	return planned
}

// leap returns how many steps begin within less than d and before a finish.
func (s *Scheduler) leap(d time.Duration) int {
	if d <= 0 {
		return 1
	}
	most := s.decoding[0].remaining()
	for _, r := range s.decoding {
		most = min(most, r.remaining())
	}
	return 1 + sort.Search(most-1, func(n int) bool {
		return s.params.decodeSteps(n+1, len(s.decoding), s.context) >= d
	})
}

func (r *Request) remaining() int { return r.OutputTokens - r.generated }

// admit reserves the KV cache for the first in the queue.
func (s *Scheduler) admit(r *Request) bool {
	if s.stuck || len(s.decoding)+len(s.prefills) >= s.params.MaxSequences {
		return false
	}
	// The last token is always computed: its output is what is sampled from.
	hashes := r.hitable(r.PromptTokens-1, s.params.BlockTokens)
	present, free := s.blocks.match(hashes)
	needed := s.blocksOf(r)
	if needed-present > s.blocks.free-free {
		s.stuck = true
		return false
	}
	r.held = s.blocks.reserve(hashes[:present], needed)
	r.state, r.published = Prefilling, present
	r.cached = present * s.params.BlockTokens
	r.computed = r.cached
	s.counters.QueriedTokens += int64(r.PromptTokens)
	s.counters.HitTokens += int64(r.cached)
	return true
}

func (s *Scheduler) blocksOf(r *Request) int {
	return (r.PromptTokens + r.OutputTokens + s.params.BlockTokens - 1) / s.params.BlockTokens
}

// End ends the step that Begin has begun.
func (s *Scheduler) End() *Step {
	s.endDecodes()
	s.endPrefills()
	return &s.report
}

// endDecodes gives those that decode their tokens. It comes before endPrefills,
// which adds those that decode from the next step on.
func (s *Scheduler) endDecodes() {
	n := s.report.Count
	kept := s.decoding[:0]
	for _, r := range s.decoding {
		r.generated += n
		s.report.Decoded = append(s.report.Decoded, r)
		if r.remaining() > 0 {
			kept = append(kept, r)
			continue
		}
		s.context -= r.PromptTokens + r.generated - n
		s.finish(r)
	}
	clear(s.decoding[len(kept):])
	s.context += n * len(kept)
	s.counters.GeneratedTokens += int64(n * len(s.decoding))
	s.decoding = kept
}

// endPrefills publishes what was computed, and gives those whose prompt is
// complete their first token.
func (s *Scheduler) endPrefills() {
	kept := s.prefills[:0]
	for _, r := range s.prefills {
		r.computed += r.chunk
		r.chunk = 0
		s.publish(r, r.computed)
		if r.Uncomputed() > 0 {
			kept = append(kept, r)
			continue
		}
		r.generated = 1
		s.counters.PromptTokens += int64(r.PromptTokens)
		s.counters.GeneratedTokens++
		s.report.First = append(s.report.First, r)
		if r.remaining() > 0 {
			r.state = Decoding
			s.decoding = append(s.decoding, r)
			s.context += r.PromptTokens + 1
		} else {
			s.finish(r)
		}
	}
	clear(s.prefills[len(kept):])
	s.prefills = kept
}

// publish makes the full blocks of the first tokens hit-able.
func (s *Scheduler) publish(r *Request, tokens int) {
	hashes := r.hitable(tokens, s.params.BlockTokens)
	for ; r.published < len(hashes); r.published++ {
		s.blocks.publish(r.held[r.published], hashes[r.published])
		s.stuck = false
	}
}

func (s *Scheduler) finish(r *Request) {
	s.publish(r, r.PromptTokens+r.OutputTokens-1)
	s.free(r)
	r.state = Finished
	s.report.Finished = append(s.report.Finished, r)
	s.counters.Finished++
}

func (s *Scheduler) free(r *Request) {
	s.blocks.release(r.held)
	r.held = nil
	s.stuck = false
}
