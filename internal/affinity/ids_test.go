package affinity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Endpoints come and go for ever, 8 at a time: those that stay keep what is known of
// them, and nobody comes into what another has served.
func TestNumbersAreUsedAgain(t *testing.T) {
	const alive, all = 8, 200_000
	m := New()
	m.Resize(alive)
	m.Begin()
	stays := m.ID("stays")
	m.Visit(1)
	m.Remember(1, stays)
	m.Give(stays, 0, 1e9)
	there := []string{"stays"}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		if len(there) == alive {
			there = append(there[:1], there[2:]...) // the one that came first leaves
		}
		there = append(there, fmt.Sprint("10.0.0.1:", i))
		m.Retain(func(address string) bool { return slices.Contains(there, address) })
		id := m.ID(there[len(there)-1])
		if id == 0 || id == stays || len(m.busy) > fewNumbers+1 {
			t.Fatalf("address %d has number %d of %d", i, id, len(m.busy))
		}
		m.Begin()
		level := uint64(random.IntN(500)) + 2 // many have served it before
		for _, key := range []uint64{1, level} {
			if e, _ := m.Visit(key); slices.Contains(e.holders[:], id) {
				t.Fatalf("address %d has number %d and with it what another has served: %v", i, id, e.holders)
			}
		}
		if m.Wait(id, 0) != 0 || m.Given(id) != 0 {
			t.Fatalf("address %d has another's work", i)
		}
		m.Remember(level, id)
		m.Give(id, 0, 5)
	}
	if e, _ := m.Visit(1); !slices.Equal(holdersOf(e), []ID{stays}) || m.ID("stays") != stays || m.Wait(stays, 0) != 1e9 {
		t.Errorf("of the one that stays is known: %v, it waits %d ns", holdersOf(e), m.Wait(stays, 0))
	}
}

// The number that was unused for the longest time is used again first.
func TestTheOldestNumberIsUsedFirst(t *testing.T) {
	m := New()
	for i := range fewNumbers {
		m.ID(fmt.Sprint(i))
	}
	for _, gone := range []string{"7", "5", "900"} {
		m.Retain(func(address string) bool { return address != gone })
	}
	for i, want := range []ID{8, 6, 901, fewNumbers + 1} {
		if got := m.ID(fmt.Sprint("new ", i)); got != want {
			t.Errorf("newcomer %d has number %d, want %d", i, got, want)
		}
	}
}

// The memory grows while it is swept, which moves all that is in it.
func TestSweptWhileItGrows(t *testing.T) {
	m := New()
	m.Begin()
	for i := range 3 * fewNumbers / 4 {
		m.Visit(uint64(i))
		m.Remember(uint64(i), m.ID(fmt.Sprint(i)))
	}
	m.Retain(func(string) bool { return false })
	for i := range fewNumbers / 8 { // about half of the sweep
		m.ID(fmt.Sprint("new ", i))
	}
	m.Resize(8)
	m.Begin()
	if len(m.numbers.unused) > 0 || m.numbers.next != 0 {
		t.Fatalf("%d numbers are unused, swept to %d", len(m.numbers.unused), m.numbers.next)
	}
	for i := 0; len(m.numbers.unused) == 0; i++ {
		m.ID(fmt.Sprint("newer ", i))
	}
	for i := range m.sets {
		for _, e := range m.sets[i] {
			for _, id := range holdersOf(&e) {
				if m.numbers.gone[id] {
					t.Fatalf("level %d has holder %d, which is unused", e.key, id)
				}
			}
		}
	}
}

// Holders close up when some are dropped, or one that is remembered again would
// stand there twice.
func TestDroppedHoldersLeaveNoGap(t *testing.T) {
	e := Entry{holders: [maxHolders]ID{3, 1, 4, 2, 5}}
	e.drop([]bool{1: true, 2: true, 5: false})
	if want := []ID{3, 4, 5}; !slices.Equal(holdersOf(&e), want) {
		t.Errorf("%v, want %v", e.holders, want)
	}
}

// Who decides on a table of before may name an endpoint that has gone: its number is
// about to be another's, so nothing is remembered of it.
func TestNothingIsRememberedOfWhoHasGone(t *testing.T) {
	m := New()
	m.Begin()
	id := m.ID("a")
	m.Visit(1)
	m.Retain(func(string) bool { return false })
	m.Remember(1, id)
	if e, _ := m.Visit(1); len(holdersOf(e)) > 0 {
		t.Errorf("holders %v", holdersOf(e))
	}
}

// More endpoints at once than there are numbers: all is forgotten, and it goes on.
func TestNumbersRunOut(t *testing.T) {
	m := New()
	for i := range 200_000 {
		if id := m.ID(fmt.Sprint(i)); id == 0 || len(m.busy) > math.MaxUint16+1 {
			t.Fatalf("address %d is %d of %d", i, id, len(m.busy))
		}
	}
	m.Give(math.MaxUint16, 0, 1) // of a table before all was forgotten
	if m.Wait(math.MaxUint16, 0) < 0 {
		t.Error("wait")
	}
}

// What one newcomer costs in a large memory of a fleet with high churn.
func BenchmarkNewcomer(b *testing.B) {
	m := New()
	m.Resize(64)
	m.Begin()
	for key := range uint64(maxEntries) {
		m.Visit(key)
		m.Remember(key, m.ID(fmt.Sprint(key%64)))
	}
	last := ""
	for i := 0; b.Loop(); i++ {
		m.Retain(func(address string) bool { return address != last })
		last = fmt.Sprint("new ", i)
		m.ID(last)
	}
}
