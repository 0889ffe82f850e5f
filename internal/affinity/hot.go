package affinity

import "math"

// Which beginnings are hot is asked by people, now and then, and not by requests. So
// no list of them is kept: some of the last requests are, and what is known of their
// levels tells where many requests part.

const (
	// sampleBits: one in 1<<sampleBits requests is kept, of the last of these maxSampled.
	sampleBits = 2
	maxSampled = 128
	// maxVisited is how many levels of a request are looked at, at most.
	maxVisited = 64
	// parts is what is left of the heat of a level at the next one where requests part.
	parts = 0.7
	// leastShown is how many recent requests must have a beginning to be told of.
	leastShown = 2
)

// sample is one of the last requests.
type sample struct {
	n      int // levels
	chars  int // of the whole prompt, as far as it was read
	whole  bool
	levels [maxVisited]uint64
}

// Sample keeps some of the requests for [Memory.Hot]. levels are those that the request
// visited, by [NextLevel]; whole says that the only one is that of a prompt shorter than
// a level.
func (m *Memory) Sample(levels []uint64, chars int, whole bool) {
	if m.clock*0x9e3779b1>>(32-sampleBits) != 0 { // no pattern of the requests' is met
		return
	}
	if m.samples == nil {
		m.samples = make([]sample, maxSampled)
	}
	s := &m.samples[m.sampled%maxSampled]
	m.sampled++
	s.n, s.chars, s.whole = copy(s.levels[:], levels), chars, whole
}

// Samples is how many requests [Memory.Hot] can be asked about.
func (m *Memory) Samples() int { return len(m.samples) }

// Beginning is what is known of the beginning of prompts.
type Beginning struct {
	Key uint64
	// Chars is its length: a multiple of levelChars, or that of a whole prompt.
	Chars int
	// Heat is how many recent requests have it, of [Memory.Total].
	Heat    float64
	Holders [maxHolders]ID
}

// Hot calls f for the beginnings of the i-th kept request at which requests part: the
// longest ones that so many have. levelChars is the distance of two levels.
func (m *Memory) Hot(i, levelChars int, f func(Beginning)) {
	s := &m.samples[i]
	var last Beginning
	for k, level := 0, 1; k < s.n; k, level = k+1, NextLevel(level) {
		e, heat := m.look(s.levels[k])
		if heat < parts*last.Heat && last.Heat >= leastShown {
			f(last)
		}
		if e == nil {
			return
		}
		last = Beginning{Key: e.key, Chars: level * levelChars, Heat: heat, Holders: e.holders}
		if s.whole {
			last.Chars = s.chars
		}
	}
	if last.Heat >= leastShown {
		f(last)
	}
}

// Total is how many recent requests all heats are of.
func (m *Memory) Total() float64 {
	return m.window / math.Ln2 * (1 - math.Exp2(-m.count/m.window))
}

// look returns what is known of a level, nil if nothing, and its heat of now. It
// changes nothing.
func (m *Memory) look(key uint64) (*Entry, float64) {
	if len(m.sets) == 0 {
		return nil, 0
	}
	set := m.set(key)
	for i := range set {
		if e := &set[i]; e.key == key && e.heat > 0 {
			return e, float64(e.heat * m.left(m.clock-e.at))
		}
	}
	return nil, 0
}
