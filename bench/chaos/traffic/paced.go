package traffic

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// pause is the time between two parts of a body.
const pause = 40 * time.Millisecond

// paced is a request body that is sent in parts. It is of no type that net/http
// could send again by itself.
type paced struct {
	ctx       context.Context
	uploading *atomic.Int64 // those of which a part is on its way
	rest      []byte
	part      int // the bytes of a part
	left      int // of the part under way
	begun     bool
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if p.left == 0 {
		if err := p.wait(); err != nil {
			return 0, err
		}
		p.left = min(p.part, len(p.rest))
	}
	n := copy(b, p.rest[:p.left])
	p.rest, p.left = p.rest[n:], p.left-n
	return n, nil
}

// wait waits before each part but the first.
func (p *paced) wait() error {
	if !p.begun {
		p.begun = true
		return nil
	}
	p.uploading.Add(1)
	defer p.uploading.Add(-1)
	return sleep(p.ctx, pause)
}

// Close implements io.Closer.
func (p *paced) Close() error { return nil }

// sleep waits for d, unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
