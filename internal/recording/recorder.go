package recording

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/extproc"
)

const (
	// tokensPerSecond is how fast an answer is taken to be written: about what one
	// of several requests gets from a large model on current GPUs.
	tokensPerSecond = 30
	// charsPerToken is the size of a token, as in package trace.
	charsPerToken = 4
	// blockTokens is the distance of two levels of a key, in tokens.
	blockTokens = 64
	// queueLength is how many finished requests may wait to be written.
	queueLength = 4096
	// maxHeld bounds what is held of requests that run or wait, in hashes: 32 MiB.
	maxHeld = 4 << 20
	// entryCost is what an entry takes beside its hashes, in hashes.
	entryCost = 32
)

// Reason is why a request was not recorded that should have been.
type Reason string

// The reasons.
const (
	// Memory: too much is held of requests that run.
	Memory Reason = "memory"
	// Queue: the files are written more slowly than requests end.
	Queue Reason = "queue"
	// Write: a file could not be written.
	Write Reason = "write"
	// Unanswered: there was no answer with a status of 200 to 299.
	Unanswered Reason = "unanswered"
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{Memory, Queue, Write, Unanswered} }

// Options are those of a recorder.
type Options struct {
	Folder string
	// Ratio is the share of the beginnings of prompts that is recorded, 0 to 1.
	Ratio float64
	// FileBytes is the largest file, at least 1 MiB; Files how many there are, at
	// least 1.
	FileBytes int64
	Files     int
	Salt      Salt
	// Written is told how many records were written, Dropped why how many were not.
	// Failing is told of the first error of writing, and of nil when it works again
	// and nothing has failed for a minute.
	// Dropped is called concurrently.
	Written func(n int)
	Dropped func(why Reason, n int)
	Failing func(error)
}

// Recorder implements [extproc.Recorder]. What it takes is written from Start to
// Close.
type Recorder struct {
	options Options
	below   uint64
	// seen counts requests since the last that was sampled, held the hashes in memory.
	seen, held atomic.Int64
	queue      chan *entry
	closing    chan struct{}
	writing    sync.WaitGroup
}

var _ extproc.Recorder = (*Recorder)(nil)

// New returns a recorder.
func New(o Options) *Recorder {
	return &Recorder{
		options: o, below: threshold(o.Ratio),
		queue: make(chan *entry, queueLength), closing: make(chan struct{}),
	}
}

// Start begins to write. It is called once.
func (r *Recorder) Start() { r.writing.Go(r.write) }

// Close writes what has ended and returns. What ends later is dropped.
func (r *Recorder) Close() {
	close(r.closing)
	r.writing.Wait()
}

// Sampled implements extproc.Recorder.
func (r *Recorder) Sampled(first uint64) (standsFor int) {
	if r.options.Salt.number(ofSample, first) >= r.below {
		r.seen.Add(1)
		return 0
	}
	return int(r.seen.Swap(0)) + 1
}

// entry is a request on its way to a file.
type entry struct {
	recorder      *Recorder
	levels        []uint64
	rest          uint64 // key of what is behind the last level, if there is something
	hasRest       bool
	input, output int
	standsFor     int
	generates     bool
	tenant, model string
	at            time.Time
}

func (e *entry) cost() int64 { return int64(len(e.levels) + entryCost) }

// Begin implements extproc.Recorder.
func (r *Recorder) Begin(b extproc.Beginning) extproc.Recording {
	e := &entry{
		recorder: r, levels: b.Levels, rest: b.Key, hasRest: b.Chars > len(b.Levels)*blockTokens*charsPerToken,
		input: max((b.Length+charsPerToken-1)/charsPerToken, 1), standsFor: b.StandsFor, generates: b.Generates,
	}
	if r.held.Add(e.cost()) > maxHeld {
		r.drop(e, Memory, e.standsFor)
		return nil
	}
	e.levels = slices.Clone(b.Levels)
	e.tenant, e.model = r.options.Salt.name(ofTenant, b.Tenant), r.options.Salt.name(ofModel, b.Model)
	return e
}

// drop counts an entry that is not written. Others stand for its requests, of
// which there are so many.
func (r *Recorder) drop(e *entry, why Reason, requests int) {
	r.held.Add(-e.cost())
	r.seen.Add(int64(requests))
	r.options.Dropped(why, 1)
}

// End implements extproc.Recording.
func (e *entry) End(o extproc.Outcome) {
	r := e.recorder
	if o.Answered.IsZero() || o.Status < 200 || o.Status > 299 {
		r.drop(e, Unanswered, e.standsFor-1) // this one was no load
		return
	}
	e.at, e.output = o.Began, 1
	if e.generates {
		e.output = outputTokens(o)
	}
	select {
	case r.queue <- e:
	default:
		r.drop(e, Queue, e.standsFor)
	}
}

// outputTokens estimates the length of an answer from how long it took. Headers of
// a plain answer come when it is finished, so there the time begins with the decision.
func outputTokens(o extproc.Outcome) int {
	from := o.Decided
	if o.Streamed {
		from = o.Answered
	}
	const most = 1 << 20 // a stream that somebody holds open writes nothing for days
	return int(min(max(o.Ended.Sub(from).Seconds()*tokensPerSecond, 1), most))
}
