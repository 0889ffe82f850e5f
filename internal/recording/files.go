package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// files are the files of a folder, of which the newest is written. Nothing is
// removed for what cannot be written: the oldest file goes when the newest has its
// first line.
type files struct {
	folder string
	bytes  int64 // of a file at most
	keep   int   // at most so many that have lines
	// create makes a file that is not there yet. What is written to it goes to its
	// end, wherever that was cut.
	create func(path string) (file, error)

	file file  // nil if there is none to go on in
	size int64 // of it
}

// file is what is needed of an os.File.
type file interface {
	io.WriteCloser
	Name() string
	Truncate(size int64) error
}

// filesOf returns the files that the options ask for.
func filesOf(o Options) files {
	return files{folder: o.Folder, bytes: o.FileBytes, keep: o.Files, create: create}
}

// CheckFolder returns an error if no recording can go into a folder because
// something else has its name or that of a folder above it. It need not be there
// yet.
func CheckFolder(path string) error {
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			return nil
		case err == nil:
			return fmt.Errorf("%s is not a folder", path)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return err
		}
		above := filepath.Dir(path)
		if above == path {
			return nil
		}
		path = above
	}
}

func create(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
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
		return fmt.Errorf("write a recording: %w", f.undo(n, err))
	}
	first := f.size == 0
	f.size += int64(n)
	if first {
		_ = f.prune() // what it could not remove keeps the next file from being begun
	}
	return nil
}

// undo cuts off the n bytes of a write that failed, so that the file can be gone on
// in: a line that is cut makes all of it unreadable.
func (f *files) undo(n int, err error) error {
	if n == 0 {
		return err
	}
	if cut := f.file.Truncate(f.size); cut != nil {
		f.close()
		return errors.Join(err, cut)
	}
	return err
}

// gone reports whether somebody has taken the file away, or its folder, in whose
// place may be something else.
func (f *files) gone() bool {
	_, err := os.Lstat(f.file.Name())
	return err != nil
}

// begin begins the next file.
func (f *files) begin() error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	if err := f.prune(); err != nil {
		return err
	}
	now := time.Now().UTC().Format("20060102T150405.000Z")
	for n := range 1000 { // another process may begin one in the same millisecond
		path := filepath.Join(f.folder, fmt.Sprintf("warmpath-%s-%03d.jsonl", now, n))
		file, err := f.create(path)
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

// prune removes the oldest of the files beyond the number. The one that is written
// is not among them: its name may be old, where somebody has set the clock back.
func (f *files) prune() error {
	entries, err := os.ReadDir(f.folder)
	if err != nil {
		return err
	}
	keep, current := f.keep, ""
	if f.file != nil {
		keep, current = keep-1, filepath.Base(f.file.Name())
	}
	var names []string // in order, as ReadDir returns them
	for _, e := range entries {
		if ours.MatchString(e.Name()) && e.Type().IsRegular() && e.Name() != current {
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

// close closes the file. One without a line leaves nothing behind.
func (f *files) close() {
	if f.file == nil {
		return
	}
	_ = f.file.Close() // what was written is written
	if f.size == 0 {
		_ = os.Remove(f.file.Name())
	}
	f.file = nil
}
