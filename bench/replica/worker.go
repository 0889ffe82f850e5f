package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// maxLag is how late a step may begin without the delay being kept. Timers that
// fire a little late must not make the engine slower, but an engine that the
// machine has held up for long must not hurry afterwards.
const maxLag = 20 * time.Millisecond

// worker runs the engine of one replica in real time, divided by the scale. A
// timer ends each step; there is none, and no goroutine, while nothing runs.
type worker struct {
	params engine.Params
	scale  float64

	mu     sync.Mutex
	engine *engine.Scheduler
	jobs   map[*engine.Request]*job
	timed  engine.Counters // what requests outside the engine add
	// stepping is true from Begin to End; next is the step's end, when timer fires.
	stepping bool
	next     time.Time
	timer    *time.Timer
	// slowness multiplies every time; frozen lets no step begin or end.
	slowness float64
	frozen   bool
}

// job is a request in the engine. The handler that waits for it sees only tokens
// and what was settled before the first of them.
type job struct {
	request engine.Request
	tokens  atomic.Int64  // generated so far
	wake    chan struct{} // has room for one: tokens has grown
}

func newWorker(p Params) (*worker, error) {
	s, err := engine.NewScheduler(p.Engine)
	if err != nil {
		return nil, err
	}
	return &worker{params: p.Engine, scale: p.TimeScale, engine: s, jobs: make(map[*engine.Request]*job), slowness: 1}, nil
}

// scaled is how long d takes here; w.mu must be held.
func (w *worker) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * w.slowness / w.scale)
}

// capacity is the longest request, answer included, in tokens.
func (w *worker) capacity() int {
	return w.params.KVTokens / w.params.BlockTokens * w.params.BlockTokens
}

// submit queues a request; an idle engine begins with it at once.
func (w *worker) submit(r engine.Request) (*job, error) {
	j := &job{request: r, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.engine.Submit(&j.request); err != nil {
		return nil, err
	}
	w.jobs[&j.request] = j
	w.start()
	return j, nil
}

// cancel takes a request out of the engine, if it is still there.
func (w *worker) cancel(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine.Cancel(&j.request)
	delete(w.jobs, &j.request)
}

// start begins a step now if none is in progress.
func (w *worker) start() {
	if !w.stepping && !w.frozen {
		w.next = time.Now()
		w.begin()
	}
}

// begin starts the next step where the last one ended.
func (w *worker) begin() {
	d, ok := w.engine.Begin(0)
	w.stepping = ok
	if !ok {
		return
	}
	if earliest := time.Now().Add(-maxLag); w.next.Before(earliest) {
		w.next = earliest
	}
	w.next = w.next.Add(w.scaled(d))
	if w.timer == nil {
		w.timer = time.AfterFunc(time.Until(w.next), w.tick)
	} else {
		w.timer.Reset(time.Until(w.next))
	}
}

// tick ends a step and begins the next.
func (w *worker) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen || time.Now().Before(w.next) {
		return // it fired before it was stopped; it is set again
	}
	step := w.engine.End()
	w.deliver(step.Decoded)
	w.deliver(step.First)
	for _, r := range step.Finished {
		delete(w.jobs, r)
	}
	w.begin()
}

func (w *worker) deliver(requests []*engine.Request) {
	for _, r := range requests {
		j := w.jobs[r]
		j.tokens.Store(int64(r.Generated()))
		select {
		case j.wake <- struct{}{}:
		default: // its handler has not looked yet
		}
	}
}

// suffer applies a fault to the engine. A step that stood still ends when that
// is over.
func (w *worker) suffer(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowness = 1
	if f.Kind == Slow {
		w.slowness = f.Factor
	}
	thaws := w.frozen && f.Kind != Hang
	w.frozen = f.Kind == Hang
	switch {
	case w.frozen && w.stepping:
		w.timer.Stop()
	case thaws && w.stepping:
		w.next = time.Now()
		w.timer.Reset(0)
	case thaws:
		w.start()
	}
}

func (w *worker) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine.ClearCache()
}

// counters are those of the engine, with the requests outside it.
func (w *worker) counters() engine.Counters {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.engine.Counters()
	c.Running += w.timed.Running
	c.QueriedTokens += w.timed.QueriedTokens
	c.HitTokens += w.timed.HitTokens
	c.PromptTokens += w.timed.PromptTokens
	c.GeneratedTokens += w.timed.GeneratedTokens
	return c
}
