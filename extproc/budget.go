package extproc

import "sync/atomic"

// budget bounds what all requests together hold: without it enough clients could
// make the process grow until it is killed, and with it every request's count.
type budget struct{ taken atomic.Int64 }

// take takes n of the limit, or nothing if that is not left. A limit of 0 is none.
func (b *budget) take(n, limit int64) bool {
	if b.taken.Add(n) > limit && limit > 0 {
		b.taken.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.taken.Add(-n) }

// reserveBody takes so many bytes into the budget of all bodies, until the request
// is decided, or was read or answered if it is already, and reports whether they were left.
func (s *stream) reserveBody(bytes int64) bool {
	if !s.server.bodies.take(bytes, s.settings.TotalBodies) {
		return false
	}
	s.reserved += bytes
	return true
}

func (s *stream) releaseBody() {
	if s.reserved != 0 {
		s.server.bodies.give(s.reserved)
		s.reserved = 0
	}
}
