package recording

import (
	"strconv"
	"time"
)

const (
	// flushBytes is how much is collected before it is written, flushEvery how long.
	flushBytes = 64 << 10
	flushEvery = time.Second
	// calmFor is how long nothing must have failed for writing to be said to work
	// again: on a disk that is nearly full every other write may fail.
	calmFor = time.Minute
)

// writer turns entries into lines, and lines into files. It belongs to one
// goroutine.
type writer struct {
	recorder *Recorder
	salt     string // its id
	files    files
	lines    []byte // whole ones
	count    int    // of the lines
	failing  bool
	failed   time.Time // when the last write failed
}

// write is the recorder's goroutine.
func (r *Recorder) write() {
	w := &writer{
		recorder: r, salt: r.options.Salt.id(),
		files: filesOf(r.options),
	}
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case e := <-r.queue:
			w.add(e)
		case <-ticker.C:
			w.flush()
		case <-r.closing:
			w.finish()
			return
		}
	}
}

// finish writes what is in the queue, and no more.
func (w *writer) finish() {
	defer w.files.close()
	for {
		select {
		case e := <-w.recorder.queue:
			w.add(e)
		default:
			w.flush()
			return
		}
	}
}

func (w *writer) add(e *entry) {
	w.lines = w.append(w.lines, e)
	w.count++
	w.recorder.held.Add(-e.cost())
	if len(w.lines) >= flushBytes {
		w.flush()
	}
}

// flush writes the lines. What fails is not tried again: it would have to be kept.
func (w *writer) flush() {
	if w.count == 0 {
		return
	}
	err := w.files.write(w.lines)
	o := &w.recorder.options
	if err != nil {
		o.Dropped(Write, w.count)
	} else {
		o.Written(w.count)
	}
	w.tell(err)
	w.lines, w.count = w.lines[:0], 0
}

// tell tells of a change between writes that fail and writes that work.
func (w *writer) tell(err error) {
	if err != nil {
		w.failed = time.Now()
	}
	failing := err != nil || w.failing && time.Since(w.failed) < calmFor
	if failing != w.failing {
		w.failing = failing
		w.recorder.options.Failing(err)
	}
}

// append appends an entry as a line of the mooncake format.
func (w *writer) append(b []byte, e *entry) []byte {
	salt := &w.recorder.options.Salt
	b = strconv.AppendInt(append(b, `{"timestamp":`...), e.at.UnixMilli(), 10)
	b = strconv.AppendInt(append(b, `,"input_length":`...), int64(e.input), 10)
	b = strconv.AppendInt(append(b, `,"output_length":`...), int64(e.output), 10)
	b = append(b, `,"hash_ids":[`...)
	for i, level := range e.levels {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, salt.number(ofBlock, level), 10)
	}
	if e.hasRest {
		if len(e.levels) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, salt.number(ofBlock, e.rest), 10)
	}
	b = strconv.AppendInt(append(b, `],"block_size":`...), blockTokens, 10)
	b = strconv.AppendInt(append(b, `,"stands_for":`...), int64(e.standsFor), 10)
	b = append(append(append(b, `,"salt_id":"`...), w.salt...), '"')
	if e.tenant != "" {
		b = append(append(append(b, `,"tenant":"`...), e.tenant...), '"')
	}
	if e.model != "" {
		b = append(append(append(b, `,"model":"`...), e.model...), '"')
	}
	return append(b, "}\n"...)
}
