package prober

import (
	"container/heap"
	"context"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/internal/health"
)

// target is a member to probe.
type target struct {
	address string
	counter *health.Counter
	reading health.Reading
	// gone says that it is a member no longer.
	gone bool
	// cancel ends the probe that runs; nil when none does.
	cancel context.CancelFunc

	due   time.Time
	index int // in the queue, while it is in it
}

// schedule says who is probed when. Each address has its own slot in the
// interval, by its hash, so that the probes of a pool are spread over it, also
// those of endpoints that joined together. Routers began at different times and
// so do not probe an endpoint at the same moment.
type schedule struct {
	begin    time.Time
	interval time.Duration
	waiting  queue
}

func newSchedule(begin time.Time, interval time.Duration) *schedule {
	return &schedule{begin: begin, interval: interval}
}

// slot returns the first time of an address's slot at or after now.
func (s *schedule) slot(address string, now time.Time) time.Time {
	offset := time.Duration(xxhash.Sum64String(address) % uint64(s.interval))
	since := now.Sub(s.begin) % s.interval
	return now.Add((offset - since + s.interval) % s.interval)
}

func (s *schedule) add(t *target, due time.Time) {
	t.due = due
	heap.Push(&s.waiting, t)
}

// again puts a target back whose probe has ended: to its next slot, or to now if
// that went by while the probe ran.
func (s *schedule) again(t *target, now time.Time) {
	next := s.slot(t.address, t.due.Add(1))
	if next.Before(now) {
		next = now
	}
	s.add(t, next)
}

// take removes a target that is due, the longest waiting first; nil if none is.
func (s *schedule) take(now time.Time) *target {
	if len(s.waiting) == 0 || s.waiting[0].due.After(now) {
		return nil
	}
	return heap.Pop(&s.waiting).(*target)
}

// next returns when a target is due, zero when none waits.
func (s *schedule) next() time.Time {
	if len(s.waiting) == 0 {
		return time.Time{}
	}
	return s.waiting[0].due
}

// remove takes a target out that waits; others are not in it.
func (s *schedule) remove(t *target) {
	if t.index < len(s.waiting) && s.waiting[t.index] == t {
		heap.Remove(&s.waiting, t.index)
	}
}

// queue is a heap of targets, the one that is due first on top.
type queue []*target

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push and Pop are for package heap.
func (q *queue) Push(x any) {
	t := x.(*target)
	t.index = len(*q)
	*q = append(*q, t)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	return t
}
