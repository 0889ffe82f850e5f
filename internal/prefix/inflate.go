package prefix

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// inflater holds a compressed body until it is complete. What it decompresses
// to is never held: it passes through one buffer.
type inflater struct {
	in  []byte
	cut bool
	src bytes.Reader
	zip *gzip.Reader
	out []byte
}

func (z *inflater) reset() { z.in, z.cut = z.in[:0], false }

// feed takes the next chunk of a body that may decompress to limit bytes. What
// does not compress takes a little more room than that.
func (z *inflater) feed(chunk []byte, limit int64) {
	limit += limit/8 + 1024
	if room := limit - int64(len(z.in)); int64(len(chunk)) > room {
		z.cut = true
		chunk = chunk[:room]
	}
	z.in = append(z.in, chunk...)
}

// open reads the header of the first member.
func (z *inflater) open() error {
	z.src.Reset(z.in)
	if z.zip == nil {
		r, err := gzip.NewReader(&z.src)
		z.zip = r
		return err
	}
	return z.zip.Reset(&z.src)
}

// run passes at most limit bytes of what the body decompresses to to sink. It
// reports whether there was more, and an error if it is no complete gzip.
func (z *inflater) run(limit int64, sink func([]byte)) (more bool, err error) {
	if err := z.open(); err != nil {
		return false, err
	}
	if z.out == nil {
		z.out = make([]byte, 32<<10)
	}
	for {
		n, err := z.zip.Read(z.out)
		if int64(n) > limit {
			sink(z.out[:limit])
			return true, nil
		}
		limit -= int64(n)
		sink(z.out[:n])
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
