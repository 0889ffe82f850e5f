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

// Bounds of the work that a body makes. Both leave alone what is small.
const (
	inflateSlack = 64 << 10
	// maxRatio is how many bytes one byte may decompress to on average. Deflate
	// reaches 1032, prompts 3 to 10, and a bomb is cheap to send only above.
	maxRatio = 100
	// minRatio is how many times as many bytes may be read decompressed as
	// compressed. A block of 17 bytes takes 4 µs although it stands for nothing, so
	// that a compressed byte can cost 100 times as much as one of plain text.
	minRatio = 4
)

// feed takes the next chunk of a body that may decompress to limit bytes.
func (z *inflater) feed(chunk []byte, limit int64) {
	if room := limit/minRatio + inflateSlack - int64(len(z.in)); int64(len(chunk)) > room {
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

// run passes at most limit bytes of what the body decompresses to to sink, fewer
// of one that is suspiciously small. It reports whether there was more, and an
// error if it is no complete gzip.
func (z *inflater) run(limit int64, sink func([]byte)) (more bool, err error) {
	limit = min(limit, inflateSlack+maxRatio*int64(len(z.in)))
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
