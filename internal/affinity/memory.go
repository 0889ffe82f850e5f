package affinity

import (
	"math"
	"sync"
)

const (
	// ways is how many entries a key may stand in.
	ways = 4
	// maxHolders is how many endpoints are remembered to have a beginning.
	maxHolders = 8
	// EntriesPerEndpoint of 32 bytes each are 2 MiB for each endpoint: the levels
	// of more than 4 M tokens of long prompts. What is forgotten before the caches
	// forget it is not found again: with half of it, a fleet of four lost 1.1 points
	// of its hits on conversations, and eight with large caches 0.5.
	EntriesPerEndpoint = 1 << 16
	minEntries         = 1 << 16
	maxEntries         = 1 << 22
)

// Entry is what is known of one level.
type Entry struct {
	key     uint64
	heat    float32 // recent requests, as of at
	at      uint32  // number of the request that was the last to have it
	holders [maxHolders]ID
}

// Memory is the table. Its methods must be called with the lock held.
type Memory struct {
	sync.Mutex

	sets   [][ways]Entry
	want   int     // entries to have before the next request
	clock  uint32  // requests
	count  float64 // requests since the beginning
	window float64 // requests after which one counts half
	// soon is what is left after the number of requests that is the index.
	soon [1024]float32
	// fetched keeps the compiler from leaving Fetch out.
	fetched uint64
	// forgotten are the entries that gave way to others.
	forgotten uint64

	numbers numbers
	busy    []int64 // by ID, that of none included: when its prefills will have ended, in ns
	// given is the work that each was given here, in ns.
	given  []int64
	placed placed
	// samples are some of the last requests, nil before the first.
	samples []sample
	sampled int // so far
	// excerpt: see [Memory.Excerpt].
	excerpt bool
}

// New returns an empty memory.
func New() *Memory {
	m := &Memory{numbers: numbers{of: make(map[string]ID), gone: make([]bool, 1)}, busy: make([]int64, 1), given: make([]int64, 1)}
	m.Resize(1)
	return m
}

// Resize fits the memory to a number of endpoints from the next request on. What
// is known is kept. It does not shrink, which would forget: the endpoints may
// come back.
func (m *Memory) Resize(endpoints int) {
	m.window = math.Max(500, 32*float64(endpoints))
	for i := range m.soon {
		m.soon[i] = float32(math.Exp2(-float64(i) / m.window))
	}
	m.numbers.resize(endpoints)
	if m.excerpt {
		return
	}
	m.want = max(m.want, minEntries)
	for m.want < endpoints*EntriesPerEndpoint && m.want < maxEntries {
		m.want *= 2
	}
}

func (m *Memory) grow() {
	old := m.sets
	m.numbers.next = 0 // the entries stand elsewhere now
	m.sets = make([][ways]Entry, m.want/ways)
	for i := range old {
		for j := range old[i] {
			if e := &old[i][j]; e.heat > 0 {
				*m.place(e.key) = *e
			}
		}
	}
}

// Forgotten returns how many levels gave way to newer ones since the beginning,
// because there was no room for both.
func (m *Memory) Forgotten() uint64 { return m.forgotten }

// Bytes returns the size of the table.
func (m *Memory) Bytes() int { return len(m.sets) * ways * 32 }

// Begin counts a request and returns by what its heats are to be divided to be
// shares of the recent requests.
func (m *Memory) Begin() (total float64) {
	if len(m.sets)*ways < m.want {
		m.grow()
	}
	m.clock++
	m.count++
	return m.Total()
}

// Visit counts a level of the request and returns what is known of it. The entry
// is valid until the next visit of another level.
func (m *Memory) Visit(key uint64) (e *Entry, heat float64) {
	e = m.place(key)
	if e.key != key || e.heat == 0 {
		if e.heat > 0 {
			m.forgotten++
		}
		*e = Entry{key: key}
	} else {
		e.heat *= m.left(m.clock - e.at)
	}
	e.heat++
	e.at = m.clock
	return e, float64(e.heat)
}

// left is what is left of a heat after so many requests.
func (m *Memory) left(requests uint32) float32 {
	if int(requests) < len(m.soon) {
		return m.soon[requests]
	}
	return float32(math.Exp2(-float64(requests) / m.window))
}

// set returns the entries that a key may stand in. There are a power of two of sets.
func (m *Memory) set(key uint64) *[ways]Entry {
	return &m.sets[key*0x9e3779b97f4a7c15>>32&uint64(len(m.sets)-1)]
}

// Fetch loads what is known of the levels of a request from memory, all at once
// instead of one after the other. It is for speed alone.
func (m *Memory) Fetch(keys []uint64) {
	for _, key := range keys {
		set := m.set(key)
		m.fetched += set[0].key + set[2].key // a cache line has two
	}
}

// place returns the entry of a key, or the one that it is to take: an empty one,
// or that of the set that was not used for the longest time.
func (m *Memory) place(key uint64) *Entry {
	set := m.set(key)
	oldest := &set[0]
	for i := range set {
		e := &set[i]
		if e.key == key && e.heat > 0 {
			return e
		}
		if oldest.heat > 0 && (e.heat == 0 || m.clock-e.at > m.clock-oldest.at) {
			oldest = e
		}
	}
	return oldest
}

// Holders returns the endpoints that have served the level; 0 is none.
func (e *Entry) Holders() *[maxHolders]ID { return &e.holders }

// Remember says that an endpoint serves a level, if both are known still.
func (m *Memory) Remember(key uint64, id ID) {
	if isGone(m.numbers.gone, id) {
		return
	}
	e := m.place(key)
	if e.key != key || e.heat == 0 {
		return
	}
	free := int(m.clock % maxHolders) // the one to go if all are taken
	for i, h := range e.holders {
		if h == id {
			return
		}
		if h == 0 {
			free = i
			break
		}
	}
	e.holders[free] = id
}

// Wait returns how long an endpoint will be busy with what it was given, in ns.
func (m *Memory) Wait(id ID, now int64) int64 {
	if int(id) >= len(m.busy) {
		return 0 // all was forgotten since
	}
	return max(m.busy[id]-now, 0)
}

// Give adds work to an endpoint, in ns.
func (m *Memory) Give(id ID, now, work int64) {
	if int(id) < len(m.busy) {
		m.busy[id] = max(m.busy[id], now) + work
		m.given[id] += work
	}
}
