package prober

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/health"
)

const (
	// collectDelay is how long failed requests are gathered before they are
	// looked at: a storm of them costs one pass over the counters each.
	collectDelay = 10 * time.Millisecond
	// publishInterval is the least time between two changes that are reported,
	// so that the start of a thousand endpoints does not make a thousand tables.
	publishInterval = 50 * time.Millisecond
)

// loop is what Run's goroutine alone touches.
type loop struct {
	*Prober
	machine *health.Machine
	set     fleet.Set
	// begun says that there has been a membership that is not empty.
	begun    bool
	schedule *schedule
	targets  map[string]*target

	running int
	results chan result

	// The times at which something is due; zero when nothing is.
	collectAt, advanceAt, publishAt time.Time
	published                       time.Time
}

type result struct {
	target  *target
	failure string // empty if good
}

func newLoop(p *Prober, now time.Time) *loop {
	return &loop{
		Prober:   p,
		machine:  health.NewMachine(p.options.Health),
		schedule: newSchedule(now, p.options.Interval),
		targets:  make(map[string]*target),
		// A probe can always hand in its result and end.
		results: make(chan result, p.options.Concurrency),
	}
}

func (l *loop) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer l.drain()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			l.takeMembers(time.Now())
			l.collectAt = first(l.collectAt, time.Now().Add(collectDelay))
		case r := <-l.results:
			l.finish(r, time.Now())
		case <-timer.C:
		}
		l.step(ctx, time.Now())
		if next := l.next(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// drain waits for the probes that still run; they have been cancelled.
func (l *loop) drain() {
	for ; l.running > 0; l.running-- {
		<-l.results
	}
}

// step does all that is due.
func (l *loop) step(ctx context.Context, now time.Time) {
	if due(l.collectAt, now) {
		l.collectAt = time.Time{}
		l.collect(now)
	}
	if due(l.advanceAt, now) {
		l.advance(now)
	}
	if due(l.publishAt, now) {
		l.publish(now)
	}
	for l.running < l.options.Concurrency {
		t := l.schedule.take(now)
		if t == nil {
			break
		}
		l.start(ctx, t)
	}
}

// next returns when step has something to do.
func (l *loop) next() time.Time {
	next := first(first(l.collectAt, l.advanceAt), l.publishAt)
	if l.running < l.options.Concurrency {
		next = first(next, l.schedule.next())
	}
	return next
}

func (l *loop) takeMembers(now time.Time) {
	set := l.members.Swap(nil)
	if set == nil {
		return
	}
	initial := !l.begun
	l.begun = l.begun || set.Len() > 0
	l.set = *set
	l.machine.SetMembers(*set, now)
	targets := make(map[string]*target, set.Len())
	counters := make(map[string]*health.Counter, set.Len())
	for _, e := range set.Endpoints() {
		t, ok := l.targets[e.Address]
		if !ok {
			t = &target{address: e.Address, counter: new(health.Counter)}
			l.join(t, now, initial)
		}
		delete(l.targets, e.Address)
		targets[e.Address], counters[e.Address] = t, t.counter
	}
	for _, t := range l.targets {
		l.leave(t)
	}
	l.targets = targets
	l.counters.Store(&counters)
	l.advanceAt = l.machine.NextChange()
	l.publish(now)
}

// join puts a new member on the schedule: the first ones count as healthy and
// may wait for their turn, a later one is probed at once.
func (l *loop) join(t *target, now time.Time, initial bool) {
	switch {
	case !l.options.Health.Probing:
	case initial:
		l.schedule.add(t, l.schedule.slot(t.address, now))
	default:
		l.schedule.add(t, now)
	}
}

func (l *loop) leave(t *target) {
	t.gone = true
	l.schedule.remove(t)
	if t.cancel != nil {
		t.cancel()
	}
}

// start probes a target that is due.
func (l *loop) start(ctx context.Context, t *target) {
	ctx, t.cancel = context.WithTimeout(ctx, l.options.Timeout)
	l.running++
	go func() { l.results <- result{t, l.probe(ctx, t.address)} }()
}

// finish takes a result over, unless the target has left meanwhile.
func (l *loop) finish(r result, now time.Time) {
	l.running--
	r.target.cancel()
	r.target.cancel = nil
	if r.target.gone {
		return
	}
	l.schedule.again(r.target, now)
	l.note(l.machine.Probed(r.target.address, now, r.failure), now)
}

// collect hands over what requests have told.
func (l *loop) collect(now time.Time) {
	changed := false
	for address, t := range l.targets {
		var o health.Outcome
		o, t.reading = t.counter.Read(t.reading)
		if o.Succeeded || o.Failures > 0 {
			changed = l.machine.Requests(address, now, o) || changed
		}
	}
	l.note(changed, now)
}

func (l *loop) advance(now time.Time) {
	changed := l.machine.Advance(now)
	l.advanceAt = l.machine.NextChange()
	l.note(changed, now)
}

// note plans the report of a change.
func (l *loop) note(changed bool, now time.Time) {
	if !changed {
		return
	}
	l.advanceAt = l.machine.NextChange()
	l.publishAt = first(l.publishAt, later(now, l.published.Add(publishInterval)))
}

func (l *loop) publish(now time.Time) {
	l.publishAt, l.published = time.Time{}, now
	view := l.machine.View()
	l.view.Store(&view)
	l.onChange(l.set, view)
}

// due reports whether a time that is set has come.
func due(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// first returns the earlier of two times, of which either may not be set.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
