package affinity

import "testing"

// What is learned is known without being hot, and counts from 0 when it is asked for.
func TestLearn(t *testing.T) {
	m := New()
	id := m.ID("10.0.0.1:80")
	m.Learn(id, []uint64{5, 6})
	m.Begin()
	e, heat := m.Visit(5)
	if heat < 1 || heat > 1.001 || len(holdersOf(e)) != 1 || holdersOf(e)[0] != id {
		t.Errorf("heat %v, holders %v", heat, holdersOf(e))
	}
	m.Learn(id, []uint64{5})
	if e, heat := m.Visit(5); heat < 1.9 || len(holdersOf(e)) != 1 {
		t.Errorf("learned again: heat %v, holders %v", heat, holdersOf(e))
	}
}

// However much is placed before it is taken, what is kept is bounded.
func TestPlacedIsBounded(t *testing.T) {
	m := New()
	m.KeepPlaced(true)
	for i := range 10 * MaxPlaced {
		m.Place(ID(1), []uint64{uint64(i), 2, 3})
	}
	levels := 0
	m.TakePlaced(func(_ ID, l []uint64) { levels += len(l) })
	if levels == 0 || levels > MaxPlaced {
		t.Errorf("%d levels kept, want at most %d", levels, MaxPlaced)
	}
	m.TakePlaced(func(ID, []uint64) { t.Error("taken twice") })
}

// Work given elsewhere waits here and is not told on.
func TestGivenElsewhere(t *testing.T) {
	m := New()
	id := m.ID("10.0.0.1:80")
	m.Give(id, 0, 30)
	m.GiveElsewhere(id, 0, 50)
	if wait, given := m.Wait(id, 0), m.Given(id); wait != 80 || given != 30 {
		t.Errorf("waits %d, given %d", wait, given)
	}
	m.GiveElsewhere(id+7, 0, 1)
	if m.Given(id+7) != 0 {
		t.Error("an endpoint that there is not was given work")
	}
}
