package affinity

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNextLevel(t *testing.T) {
	var all []int
	for n := 1; n <= 100; n = NextLevel(n) {
		all = append(all, n)
	}
	want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96}
	if !slices.Equal(all, want) {
		t.Errorf("%v\nwant %v", all, want)
	}
	count := 0
	for n := 1; n <= MaxLevels; n = NextLevel(n) {
		count++
	}
	if count > 64 {
		t.Errorf("%d levels of %d are looked at", count, MaxLevels)
	}
}

// Levels that are looked at in a long prompt are looked at in every longer one,
// or what was remembered of it would not be found.
func TestLevelsOfAShorterPrompt(t *testing.T) {
	seen := make(map[int]bool)
	for n := 1; n <= MaxLevels; n = NextLevel(n) {
		seen[n] = true
		for m := 1; m <= n; m = NextLevel(m) {
			if !seen[m] {
				t.Fatalf("level %d is looked at in a prompt of %d only", m, n)
			}
		}
	}
}

// twin is the memory as it would be without bounds.
type twin struct {
	window  float64
	now     int
	seen    map[uint64][]int // numbers of the requests that had a key
	holders map[uint64]map[ID]bool
}

func (w *twin) heat(key uint64) (heat float64) {
	for _, at := range w.seen[key] {
		heat += math.Exp2(-float64(w.now-at) / w.window)
	}
	return heat
}

func TestMemoryAgainstTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New()
		w := &twin{window: 500, seen: make(map[uint64][]int), holders: make(map[uint64]map[ID]bool)}
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			total := m.Begin()
			w.now++
			var sum float64
			for i := range w.now {
				sum += math.Exp2(-float64(i) / w.window)
			}
			if math.Abs(total/sum-1) > 0.01 {
				t.Fatalf("request %d: total %v, want %v", w.now, total, sum)
			}
			for key := range uint64(rapid.IntRange(1, 4).Draw(t, "levels")) {
				key += 1000 * uint64(rapid.IntRange(1, 3).Draw(t, "prompt"))
				w.seen[key] = append(w.seen[key], w.now)
				e, heat := m.Visit(key)
				if want := w.heat(key); math.Abs(heat-want) > 0.001*want {
					t.Fatalf("heat %v, want %v", heat, want)
				}
				for _, id := range e.Holders() {
					if id != 0 && !w.holders[key][id] {
						t.Fatalf("%d is a holder of %d", id, key)
					}
				}
				if len(w.holders[key]) <= maxHolders && len(holdersOf(e)) != len(w.holders[key]) {
					t.Fatalf("holders %v, want %v", holdersOf(e), w.holders[key])
				}
				id := ID(rapid.IntRange(1, 12).Draw(t, "endpoint"))
				m.Remember(key, id)
				if w.holders[key] == nil {
					w.holders[key] = make(map[ID]bool)
				}
				w.holders[key][id] = true
				if !slices.Contains(holdersOf(m.place(key)), id) {
					t.Fatalf("%d is not remembered", id)
				}
			}
		}
	})
}

func holdersOf(e *Entry) (ids []ID) {
	for _, id := range e.Holders() {
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Millions of keys neither grow the memory nor push out what is hot.
func TestMemoryIsBounded(t *testing.T) {
	m := New()
	m.Resize(8)
	for i := range 2_000_000 {
		m.Begin()
		m.Visit(uint64(i) * 0x9e3779b97f4a7c15)
		if i%20 == 0 {
			if e, heat := m.Visit(7); i > 100_000 && (heat < 30 || len(holdersOf(e)) != 1) {
				t.Fatalf("what is hot was forgotten: heat %v", heat)
			}
			m.Remember(7, 1)
		}
	}
	if want := 8 * EntriesPerEndpoint * 32; m.Bytes() != want {
		t.Errorf("%d bytes, want %d", m.Bytes(), want)
	}
	// All keys that came are in the table, or were counted when they had to go.
	kept := 0
	for i := range m.sets {
		for _, e := range m.sets[i] {
			if e.heat > 0 {
				kept++
			}
		}
	}
	if all := uint64(2_000_001); m.Forgotten()+uint64(kept) != all {
		t.Errorf("%d levels forgotten and %d kept, want %d together", m.Forgotten(), kept, all)
	}
}

func TestResizeKeeps(t *testing.T) {
	m := New()
	for key := range uint64(1000) {
		m.Begin()
		m.Visit(key + 1)
		m.Remember(key+1, ID(key%5+1))
	}
	m.Resize(100)
	m.Begin()
	for key := range uint64(1000) {
		if e, _ := m.Visit(key + 1); !slices.Equal(holdersOf(e), []ID{ID(key%5 + 1)}) {
			t.Fatalf("key %d has holders %v", key, holdersOf(e))
		}
	}
}

func TestWait(t *testing.T) {
	m := New()
	id := m.ID("a")
	m.Give(id, 100, 50)
	m.Give(id, 120, 50)
	for now, want := range map[int64]int64{120: 80, 200: 0, 300: 0} {
		if got := m.Wait(id, now); got != want {
			t.Errorf("at %d: %d, want %d", now, got, want)
		}
	}
	m.Give(id, 1000, 1)
	if got := m.Wait(id, 1000); got != 1 {
		t.Errorf("%d after a pause, want 1", got)
	}
}

// In a large fleet the heats last longer: each endpoint's part of the requests is
// smaller, and has to be told from chance.
func TestHeatsLastLongerInALargeFleet(t *testing.T) {
	left := func(endpoints int) float64 {
		m := New()
		m.Resize(endpoints)
		m.Begin()
		m.Visit(1)
		for range 2000 {
			m.Begin()
		}
		_, heat := m.Visit(1)
		return heat - 1
	}
	if small, large := left(8), left(100); math.Abs(small-1.0/16) > 0.001 || math.Abs(large-math.Exp2(-2000.0/3200)) > 0.001 {
		t.Errorf("of one request %v and %v are left after 2000", small, large)
	}
}

// The ninth endpoint takes the place of another, not always of the same.
func TestHoldersTakeTurns(t *testing.T) {
	m := New()
	gone := make(map[ID]bool)
	for i := range ID(40) {
		m.Begin()
		e, _ := m.Visit(7)
		before := *e.Holders()
		m.Remember(7, i+1)
		for _, id := range before {
			if id != 0 && !slices.Contains(e.Holders()[:], id) {
				gone[id] = true
			}
		}
	}
	if len(gone) < 20 {
		t.Errorf("%d endpoints gave way to others: %v", len(gone), gone)
	}
}
