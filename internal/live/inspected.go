package live

import (
	"maps"
	"time"

	"github.com/warmpath/warmpath/extproc"
)

// inspected is what the answers of an endpoint said that were looked at: its last ones,
// and those of the last minute.
type inspected struct {
	at     int64 // second of the last one
	told   int64 // second of the last one that told of tokens
	n      int   // how many of these there were
	last   [many]tokens
	sum    tokens // of last
	minute [parts]answers
	// first are the times to the first token, by what was expected of the cache.
	first [extproc.CacheWarm + 1]meanTime
}

const (
	// many answers are as good as all.
	many = 100
	// shownFor is how many seconds what answers said is shown after the last of them, as
	// long as the time lines go back.
	shownFor = MaxSeconds
)

// tokens are those of prompts, and the cached ones among them.
type tokens struct{ prompt, cached int64 }

func (t *tokens) add(u tokens) { t.prompt, t.cached = t.prompt+u.prompt, t.cached+u.cached }

func (t *tokens) sub(u tokens) { t.prompt, t.cached = t.prompt-u.prompt, t.cached-u.cached }

// answers are how many were looked at in five seconds, and what they said.
type answers struct {
	at, n int64
	sum   tokens
}

func (x *inspected) add(now int64, one tokens) {
	if now-x.told > shownFor {
		x.n, x.last, x.sum = 0, [many]tokens{}, tokens{}
	}
	x.told = now
	oldest := &x.last[x.n%many]
	x.sum.sub(*oldest)
	x.sum.add(one)
	*oldest = one
	x.n++
	part, at := &x.minute[uint64(now/partSeconds)%parts], now/partSeconds
	if part.at != at {
		*part = answers{at: at}
	}
	part.n++
	part.sum.add(one)
}

// tokens are those of the answers of the last minute, and if these are few of the last
// ones that there were; none if that was long ago.
func (x *inspected) tokens(now int64) (sum tokens) {
	var n int64
	for _, part := range x.minute {
		if part.at > now/partSeconds-parts {
			n += part.n
			sum.add(part.sum)
		}
	}
	switch {
	case n >= many:
		return sum
	case now-x.told > shownFor:
		return tokens{}
	}
	return x.sum
}

// rate is the hit rate, nil if there was no prompt.
func (t tokens) rate() *float64 {
	if t.prompt == 0 {
		return nil
	}
	return new(float64(t.cached) / float64(t.prompt))
}

// meanTime is the mean of times, of which the earlier count less and less.
type meanTime struct {
	at     int64 // second of the last one
	sum, n float64
}

func (m *meanTime) add(now int64, d time.Duration) {
	if now-m.at > shownFor {
		*m = meanTime{}
	}
	m.at, m.sum, m.n = now, m.sum*fade+d.Seconds(), m.n*fade+1
}

// mean is 0 if there is none, or none but of long ago.
func (m *meanTime) mean(now int64) float64 {
	if m.n == 0 || now-m.at > shownFor {
		return 0
	}
	return m.sum / m.n
}

// fade is what an answer that was looked at counts for after the next one.
const fade = 0.99

// heard is what an answer said that was looked at.
type heard struct {
	tokens   tokens        // no prompt if it did not tell
	first    time.Duration // how long its first content took; 0 if that is not known
	expected extproc.CacheExpectation
}

// inspect takes what was read of a response. Engines that leave the cached tokens out when
// there are none are believed only if they have told of some before.
func (s *Store) inspect(r *extproc.Record) {
	i, h := r.Inspection, heard{expected: r.CacheExpectation()}
	if i.Result == extproc.InspectionRead || i.Result == extproc.InspectionNoCached && s.tellsOfCached(r.Served) {
		h.tokens = tokens{i.PromptTokens, i.CachedTokens}
	}
	if !i.FirstToken.IsZero() {
		h.first = i.FirstToken.Sub(r.Began)
	}
	s.hear(r.Served, s.secondOf(time.Now()), h)
}

func (s *Store) tellsOfCached(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.inspected[address]
	return x != nil && x.n > 0
}

// Inspected tells what an engine said of a prompt: its tokens, and those that it found in
// its cache, 0 of 0 if it did not say; and how long its first content took, 0 if that is
// not known, which counts with those of which the same was expected. Endpoints that were
// never chosen are ignored.
func (s *Store) Inspected(address string, promptTokens, cachedTokens int, firstToken time.Duration, expected extproc.CacheExpectation) {
	s.hear(address, s.secondOf(time.Now()), heard{tokens{int64(promptTokens), int64(cachedTokens)}, firstToken, expected})
}

// hear counts an answer of the second now.
func (s *Store) hear(address string, now int64, h heard) {
	told := h.tokens.prompt > 0 && h.tokens.cached >= 0 && h.tokens.cached <= h.tokens.prompt
	if !told && h.first <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.inspected[address]
	if x == nil {
		if !s.chosen(address) || !s.roomInspected(now) {
			return
		}
		x = new(inspected)
		s.inspected[address] = x
	}
	x.at = now
	if told {
		x.add(now, h.tokens)
	}
	if h.first > 0 {
		x.first[h.expected].add(now, h.first)
	}
}

// roomInspected reports whether another endpoint's answers can be counted, and forgets
// those of long ago if that is needed.
func (s *Store) roomInspected(now int64) bool {
	if len(s.inspected) >= maxEndpoints {
		maps.DeleteFunc(s.inspected, func(_ string, x *inspected) bool { return now-x.at > forgottenAfter })
	}
	return len(s.inspected) < maxEndpoints
}
