package trial

import (
	"sync/atomic"

	"github.com/warmpath/warmpath/internal/route"
)

// reasons is how many reasons a decision may have.
const reasons = int(route.Saturated) + 1

// totals are what has come of a pool's trials since the start. They outlive what is on
// trial.
type totals struct {
	shadowed, split atomic.Bool // there was one
	real, shadow    counts
	moved           atomic.Uint64
	arms            [SplitArm + 1]counts
}

// counts are those of one policy.
type counts struct {
	reasons       [reasons]atomic.Uint64
	prompt, warm  atomic.Uint64
	busiest, mean atomic.Uint64 // in thousandths of a request
}

// count counts a decision, and how the loads are after it.
func (c *counts) count(reason route.Reason, t *route.Table) {
	c.reasons[reason].Add(1)
	busiest, mean := t.Balance()
	c.busiest.Add(uint64(1000 * busiest))
	c.mean.Add(uint64(1000 * mean))
}

// cached counts a prompt of so many characters, of which some were sent there before.
func (c *counts) cached(warm, chars int) {
	c.prompt.Add(uint64(chars))
	c.warm.Add(uint64(min(warm, chars)))
}

// Total is what has come of one policy since the start.
type Total struct {
	// ByReason are the decisions, in the order of [route.Reasons].
	ByReason []uint64
	// Characters of the prompts that were read, and those of them that the chosen
	// endpoint had been sent before.
	Characters, Cached uint64
	// Busiest and Mean are the requests that ran at the busiest endpoint and at the mean
	// one, summed over the decisions: their quotient is how uneven the loads were. They
	// are 0 for an arm of a split.
	Busiest, Mean float64
}

func (c *counts) total() Total {
	t := Total{
		Characters: c.prompt.Load(), Cached: c.warm.Load(),
		Busiest: float64(c.busiest.Load()) / 1000, Mean: float64(c.mean.Load()) / 1000,
	}
	for i := range c.reasons {
		t.ByReason = append(t.ByReason, c.reasons[i].Load())
	}
	return t
}

// Decisions is how many there were.
func (t Total) Decisions() (sum uint64) {
	for _, n := range t.ByReason {
		sum += n
	}
	return sum
}

// HitRate is the expected one, 0 to 1, and whether anything is known.
func (t Total) HitRate() (rate float64, ok bool) {
	return float64(t.Cached) / float64(max(t.Characters, 1)), t.Characters > 0
}

// Overflow is the share of the decisions that went elsewhere than they belong, because
// of the load.
func (t Total) Overflow() float64 {
	if len(t.ByReason) == 0 {
		return 0
	}
	return float64(t.ByReason[route.Overflow]+t.ByReason[route.Relief]+t.ByReason[route.Saturated]) / float64(max(t.Decisions(), 1))
}

// Imbalance is what the busiest endpoint had over the mean, 1 at least.
func (t Total) Imbalance() float64 {
	if t.Mean == 0 {
		return 1
	}
	return t.Busiest / t.Mean
}

// ShadowReport compares a shadow with what really happened.
type ShadowReport struct {
	Real, Shadow Total
	// Moved requests would have gone elsewhere.
	Moved uint64
	// Outstanding is how many requests the shadow has running now.
	Outstanding int64
}

// SplitReport compares the arms of a split, by the decisions on prompts.
type SplitReport struct{ Main, Split Total }

func (t *totals) shadowReport() ShadowReport {
	return ShadowReport{Real: t.real.total(), Shadow: t.shadow.total(), Moved: t.moved.Load()}
}

func (t *totals) splitReport() SplitReport {
	return SplitReport{Main: t.arms[MainArm].total(), Split: t.arms[SplitArm].total()}
}

// Report returns what has come of the trials since the start: nil for what was never
// tried.
func (t *Trials) Report() (shadow *ShadowReport, split *SplitReport) {
	if t.totals.shadowed.Load() {
		shadow = new(t.totals.shadowReport())
		if current := t.Current(); current != nil && current.Shadow != nil {
			shadow.Outstanding = current.Shadow.Outstanding()
		}
	}
	if t.totals.split.Load() {
		split = new(t.totals.splitReport())
	}
	return shadow, split
}

// State is what is on trial and what has come of it since it is: a shadow with the same
// policy, a split with the same share of the same conversations too.
type State struct {
	// Shadow and Split are off with a share of 0; then the reports say nothing.
	Shadow, Split Settings
	OfShadow      ShadowReport
	OfSplit       SplitReport
}

// State returns the state of now.
func (t *Trials) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := State{Shadow: t.shadow, Split: t.split}
	shadow, split := t.Report()
	if shadow != nil {
		s.OfShadow = ShadowReport{
			Real: shadow.Real.since(t.before.shadow.Real), Shadow: shadow.Shadow.since(t.before.shadow.Shadow),
			Moved: shadow.Moved - t.before.shadow.Moved, Outstanding: shadow.Outstanding,
		}
	}
	if split != nil {
		s.OfSplit = SplitReport{Main: split.Main.since(t.before.split.Main), Split: split.Split.since(t.before.split.Split)}
	}
	return s
}

// since is what has come after another total.
func (t Total) since(before Total) Total {
	for i := range before.ByReason {
		t.ByReason[i] -= before.ByReason[i]
	}
	t.Characters, t.Cached = t.Characters-before.Characters, t.Cached-before.Cached
	t.Busiest, t.Mean = t.Busiest-before.Busiest, t.Mean-before.Mean
	return t
}
