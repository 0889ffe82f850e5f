package watch

import (
	"os"
	"time"
)

// Bounds for taking a file that looks as before for unchanged.
const (
	// settled is how old a modification must be when the file is read: younger,
	// another may follow with the same time, if the file system's clock is coarse.
	settled = time.Second
	// trust is how long looks are relied on.
	trust = 2 * time.Second
)

// reader reads a file again only when it looks different: a large membership file
// takes longer to read than to look at, twenty times a second.
type reader struct {
	read func(path string) ([]byte, error)

	look os.FileInfo // at the time of the last reading; nil if that failed
	at   time.Time
	data []byte
}

func (r *reader) again(path string) ([]byte, error) {
	look, err := os.Stat(path)
	now := time.Now()
	if err == nil && r.look != nil && r.same(look) && now.Sub(r.at) < trust {
		return r.data, nil
	}
	data, readErr := r.read(path)
	r.look, r.at, r.data = nil, now, data
	if err == nil && readErr == nil {
		r.look = look
	}
	return data, readErr
}

// same reports whether the file looks as it did, and had done so for a while when
// it was read.
func (r *reader) same(look os.FileInfo) bool {
	return os.SameFile(look, r.look) && look.Size() == r.look.Size() && look.ModTime().Equal(r.look.ModTime()) &&
		r.at.Sub(r.look.ModTime()) > settled
}
