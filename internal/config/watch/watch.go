// Package watch notices that a file has new content. It polls the content
// rather than the directory, so that a ConfigMap's symlink swap, a rename into
// place, an edit in place and a network file system all look alike.
package watch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// DefaultInterval is the time between two readings. A change is known after two
// of them, so a drain takes effect within 100 ms.
const DefaultInterval = 50 * time.Millisecond

// MaxBytes is the largest file that is read.
const MaxBytes = 16 << 20

// File is a file to watch.
type File struct {
	Path string
	// Interval is the time between two readings; zero is DefaultInterval.
	Interval time.Duration
	// Read returns the content; nil is [ReadFile]. It must be quick.
	Read func(path string) ([]byte, error)
}

// Event is one thing learned about the file: its content, or why it cannot be
// read. Data must not be changed.
type Event struct {
	Data []byte
	Err  error
}

func (e Event) equal(o Event) bool {
	if e.Err != nil || o.Err != nil {
		return e.Err != nil && o.Err != nil && e.Err.Error() == o.Err.Error()
	}
	return bytes.Equal(e.Data, o.Data)
}

// Run calls report, one call at a time, whenever the file has become different
// from what was reported before, until ctx ends; it then returns the context's
// error.
//
// What was read counts once two readings in a row agree on it. That keeps a
// file that is just being written from being taken for the new content, and a
// file that is missing for an instant from being taken for lost. A writer that
// pauses longer than two intervals in the middle is not recognised: write
// beside the file and rename.
//
// An error is reported once, and the content again when it is back, even
// unchanged, so that the receiver knows. The first reading is reported at once,
// unless seen is not nil: then the caller has already used that content and
// only wants to hear of another.
func (f File) Run(ctx context.Context, seen []byte, report func(Event)) error {
	interval := f.Interval
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	read := f.Read
	if read == nil {
		read = (&reader{read: ReadFile}).again
	}
	previous := Event{Data: seen}
	if seen == nil {
		previous = event(read(f.Path))
		report(previous)
	}
	reported := previous
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now := event(read(f.Path))
		if now.equal(previous) && !now.equal(reported) {
			report(now)
			reported = now
		}
		previous = now
	}
}

func event(data []byte, err error) Event {
	if err != nil {
		return Event{Err: err}
	}
	return Event{Data: data}
}

// ReadFile reads a regular file of at most MaxBytes. Pipes and devices are
// refused, because reading them may block for ever.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read file: %s is not a regular file but %v", path, info.Mode().Type())
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read file: %w", err)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("read file: %s has more than %d bytes", path, MaxBytes)
	}
	return data, nil
}
