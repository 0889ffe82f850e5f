package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// Since is what somebody has seen already.
type Since struct {
	// Second is the first one that is missing, Position that of the last snapshot.
	Second   int64
	Position uint64
	// Decisions is how many are wanted at most, the newest. Who wants fewer than
	// MaxDecisions is not told how those went on that are older.
	Decisions int
}

// Since returns the seconds that are complete and the decisions that are new or
// different, the oldest first, and what to ask for next.
func (s *Store) Since(seen Since, now time.Time) (seconds []view.Second, decisions []view.Decision, next Since) {
	present := s.secondOf(now)
	s.mu.Lock()
	for at := max(seen.Second, present-MaxSeconds+1, 0); at < present; at++ {
		if x := &s.seconds[at%MaxSeconds]; x.at == at {
			seconds = append(seconds, x.view())
		} else {
			seconds = append(seconds, (&second{at: at}).view())
		}
	}
	entries := s.last.since(seen.Position, seen.Decisions)
	next = Since{Second: max(present, seen.Second), Position: s.last.changes, Decisions: seen.Decisions}
	s.mu.Unlock()
	decisions = slices.Grow(decisions, len(entries))
	for i := range entries {
		decisions = append(decisions, entries[i].view())
	}
	return seconds, decisions, next
}

// since copies the newest entries that have changed, the oldest first.
func (g *ring) since(position uint64, most int) (list []entry) {
	first := g.n - min(uint64(max(most, 0)), g.n, MaxDecisions)
	changed := 0
	for i := first; i < g.n; i++ {
		if g.entries[i%MaxDecisions].change > position {
			changed++
		}
	}
	list = slices.Grow(list, changed) // requests wait for the lock: nothing is copied twice
	for i := first; i < g.n; i++ {
		if e := &g.entries[i%MaxDecisions]; e.change > position {
			list = append(list, *e)
		}
	}
	return list
}

func (e *entry) view() view.Decision {
	v := ViewDecision(e.pool, &e.decision, e.cached, e.chars)
	v.ID, v.At, v.RequestID, v.Model = e.id, e.decided, e.request.String(), e.model.String()
	v.Micros = micros(e.took)
	if v.Arm = e.arm.String(); e.arm == trial.SplitArm {
		v.Sentence += " The split's policy decided."
	}
	v.Status, v.Served, v.Missed, v.Attempts, v.Ended = e.status, e.server.String(), e.missed, e.attempts, e.ended
	if e.missed {
		v.Sentence += fmt.Sprintf(" Envoy sent it to %s instead.", v.Served)
	}
	return v
}

// ViewDecision returns what is shown of a decision. cached is how many of its characters
// the chosen endpoint was known to have, -1 if nobody knows.
func ViewDecision(pool string, d *route.Decision, cached, chars int) view.Decision {
	v := view.Decision{
		Pool: PoolName(pool), Strategy: d.Strategy.String(), Reason: d.Reason.String(), Chosen: d.Chosen,
		Homes: d.Homes(), Rank: d.Rank, Load: d.Load, Bound: d.Bound, Depth: d.Depth, Cached: cached, Characters: chars,
		Sentence: Sentence(d),
	}
	if d.Keyed {
		v.Key = Hex(d.Key)
	}
	return v
}

// Hex is a key as it is shown everywhere.
func Hex(key uint64) string { return fmt.Sprintf("%016x", key) }

// PoolName is what a pool is called; the one without a name is the default.
func PoolName(name string) string {
	if name == "" {
		return "default"
	}
	return name
}
