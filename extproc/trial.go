package extproc

import (
	"slices"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// tried is the part of a stream's state that takes a policy on trial.
type tried struct {
	current *trial.Current
	slots   trial.Slots
	// armed: it is known whose policy decides.
	armed bool
	// waiting is what is to be tried once the answer has been sent, nil for nothing.
	waiting *waiting
}

// waiting is a decided request that a shadow has not decided yet.
type waiting struct {
	asked trial.Asked
	// parts are those of a body that was read, of at most length characters; there are
	// none without.
	parts    []*extprocv3.HttpBody
	complete bool
	length   int
	result   prefix.Result
}

// tryPool notes what is on trial in the stream's pool.
func (s *stream) tryPool() {
	s.tried, s.record.Arm = nil, trial.NoArm
	if current := s.pool.Trials.Current(); current != nil {
		s.tried = &tried{current: current}
		if s.splits() != nil {
			s.record.Arm = trial.MainArm
		}
	}
}

// splits returns the split that the request is subject to, nil if it is to none: what
// Envoy's configuration says of it holds.
func (s *stream) splits() *trial.Split {
	if s.tried == nil || !s.ownPolicy() {
		return nil
	}
	return s.tried.current.Split
}

// ownPolicy reports whether the request is decided by its pool's own policy.
func (s *stream) ownPolicy() bool {
	return s.said.Origin == "" || s.said.Policy == s.pool.Router.Table().Policy()
}

// alsoTried reports whether the body is to be read because a policy is on trial.
func (s *stream) alsoTried() bool {
	return s.tried != nil && s.pool.Router.Table().Candidates() >= 2
}

// chooseArm finds whose policy decides on a prompt, and reports whether the body has to be
// read again for it.
func (s *stream) chooseArm(r *prefix.Result) (again bool) {
	split := s.splits()
	if split == nil || s.tried.armed || r.Kind == prefix.None {
		return false
	}
	read := s.readLength()
	s.tried.armed = true
	if s.record.Arm = split.Arm(r.Levels, r.Key); s.record.Arm == trial.SplitArm {
		s.policy = split.Policy()
	}
	return s.policy.NeedsKey() && s.readLength() != read
}

// await has a decision tried once its answer has been sent.
func (s *stream) await(request *route.Request) {
	if s.tried == nil || s.record.Decision.Chosen == "" {
		return
	}
	w := &waiting{asked: trial.Asked{Request: *request, Chosen: s.record.Decision.Chosen, Reason: s.record.Decision.Reason}}
	w.asked.Request.Levels, w.asked.Request.Keyed = nil, false
	if !s.ownPolicy() {
		own := s.policy
		w.asked.Own = &own
	}
	s.tried.waiting = w
}

// awaitText has a decision tried on a body. r is what was read of at most length
// characters of it, nil if nothing was.
func (s *stream) awaitText(r *prefix.Result, length int, complete bool, parts []*extprocv3.HttpBody) {
	if s.tried == nil || s.tried.waiting == nil {
		return
	}
	w := s.tried.waiting
	w.parts = slices.Clone(parts) // or the usual request, without trials, would keep its list on the heap
	w.complete, w.length = complete, length
	if r != nil {
		w.result = *r
		w.result.Levels = slices.Clone(r.Levels) // the scanner's
	}
}

// afterwards tries what waits. Its answer has been sent, so that nothing waits for this.
func (s *stream) afterwards() {
	if s.tried == nil || s.tried.waiting == nil || s.rec.reading {
		return
	}
	defer s.untriable()
	w := s.tried.waiting
	s.tried.waiting = nil
	s.readToTry(w)
	if split := s.tried.current.Split; split != nil {
		split.Count(s.record.Arm, &w.asked)
	}
	if shadow := s.tried.current.Shadow; shadow != nil {
		s.keyToTry(w, shadow)
		shadow.Decide(&w.asked, &s.tried.slots)
	}
}

// untriable keeps a defect in trying from the request, which is decided and answered.
func (s *stream) untriable() {
	if recover() != nil {
		s.panicked()
	}
}

// tryLength is how much of a prompt is read to try a policy on it: as much as any looks
// at, so that all that a request has in common with others is known.
const tryLength = affinity.MaxLevels * prefix.LevelChars

// readToTry reads the rest of what is looked at of a prompt.
func (s *stream) readToTry(w *waiting) {
	if w.parts == nil {
		return
	}
	if w.length < tryLength && w.result.Chars >= w.length {
		scanner, result := s.scan(tryLength, w.complete, w.parts)
		result.Levels = slices.Clone(result.Levels)
		s.server.scanners.Put(scanner)
		w.result, w.length = result, tryLength
	}
	r := &w.asked.Request
	r.Key, r.Keyed, r.Levels = w.result.Key, w.result.Kind != prefix.None, w.result.Levels
	r.Model, r.Adapter = w.result.Model, w.result.Adapter
	r.Chars = w.result.Chars
	if r.Chars >= tryLength { // about as many as the body has bytes
		r.Chars = int(max(int64(r.Chars), s.record.BodyBytes, s.head.contentLength))
	}
}

// keyToTry makes the key of a policy: of a fixed length it is that of a level, if there
// is one of just that length.
func (s *stream) keyToTry(w *waiting, shadow *trial.Shadow) {
	w.asked.Key = w.asked.Request.Key
	p := shadow.Policy()
	if w.asked.Own != nil {
		p = *w.asked.Own
	}
	n := p.PrefixLength
	if p.Strategy != route.PrefixAware || n == route.AutoPrefixLength || w.result.Chars <= n {
		return
	}
	if n%prefix.LevelChars == 0 {
		w.asked.Key = w.result.Levels[n/prefix.LevelChars-1]
		return
	}
	scanner, result := s.scan(n, w.complete, w.parts)
	defer s.server.scanners.Put(scanner)
	w.asked.Key = result.Key
}
