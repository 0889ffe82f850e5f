package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// files are the files of a folder, of which the newest is written.
type files struct {
	folder string
	bytes  int64 // of a file at most
	keep   int   // at most so many

	file file  // nil if there is none to go on in
	size int64 // of it
}

// file is what is needed of an os.File.
type file interface {
	io.WriteCloser
	Name() string
	Truncate(size int64) error
}

// ours are the names of the files: in the order of their names they are in that of
// their age.
var ours = regexp.MustCompile(`^warmpath-\d{8}T\d{6}\.\d{3}Z-\d{3}\.jsonl$`)

// write writes whole lines into one file, or nothing.
func (f *files) write(lines []byte) error {
	if f.file != nil && (f.size+int64(len(lines)) > f.bytes || f.gone()) {
		f.close()
	}
	if f.file == nil {
		if err := f.begin(); err != nil {
			return fmt.Errorf("begin a recording: %w", err)
		}
	}
	n, err := f.file.Write(lines)
	if err != nil {
		// A line that is cut makes the whole file unreadable.
		if n > 0 {
			err = errors.Join(err, f.file.Truncate(f.size))
		}
		f.close()
		return fmt.Errorf("write a recording: %w", err)
	}
	f.size += int64(n)
	return nil
}

// gone reports whether somebody has taken the file away, or its folder, in whose
// place may be something else.
func (f *files) gone() bool {
	_, err := os.Lstat(f.file.Name())
	return err != nil
}

// begin begins the next file, after it has made room for it.
func (f *files) begin() error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	if err := f.prune(f.keep - 1); err != nil {
		return err
	}
	now := time.Now().UTC().Format("20060102T150405.000Z")
	for n := range 1000 { // another process may begin one in the same millisecond
		path := filepath.Join(f.folder, fmt.Sprintf("warmpath-%s-%03d.jsonl", now, n))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.file, f.size = file, 0
		return nil
	}
	return fmt.Errorf("%s has 1000 files of one millisecond", f.folder)
}

// prune removes the oldest files but so many.
func (f *files) prune(keep int) error {
	entries, err := os.ReadDir(f.folder)
	if err != nil {
		return err
	}
	var names []string // in order, as ReadDir returns them
	for _, e := range entries {
		if ours.MatchString(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	for len(names) > keep {
		if err := os.Remove(filepath.Join(f.folder, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

func (f *files) close() {
	if f.file != nil {
		_ = f.file.Close() // what was written is written
		f.file = nil
	}
}
