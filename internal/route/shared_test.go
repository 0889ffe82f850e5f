package route

import (
	"slices"
	"testing"
)

// tell passes on what one router has done to another.
func tell(from, to *Router, now int64, before map[string]int64) {
	from.Given(func(address string, work int64) {
		to.GiveElsewhere(address, now, work-before[address])
		before[address] = work
	})
	type placement struct {
		address string
		levels  []uint64
	}
	var list []placement
	from.Placed(func(address string, levels []uint64) { list = append(list, placement{address, slices.Clone(levels)}) })
	for _, p := range list {
		to.PlaceElsewhere(p.address, p.levels)
	}
}

// What one router has placed the other finds warm, and the work waits there for it
// too.
func TestRoutersShare(t *testing.T) {
	a, b := newWorld(4, AutoConcurrencyThreshold), newWorld(4, AutoConcurrencyThreshold)
	a.router.Share(true)
	levels := prompt("document", 100)
	d, slot := a.router.Table().Pick(ask(levels, 1))
	slot.Release()
	tell(a.router, b.router, 1, map[string]int64{})
	m := b.router.memory
	if wait := m.Wait(m.ID(d.Chosen), 1); wait == 0 {
		t.Errorf("nothing waits at %s", d.Chosen)
	}
	again, slot := b.router.Table().Pick(ask(levels, 60e9))
	slot.Release()
	if again.Chosen != d.Chosen || again.Warm < 96*LevelChars {
		t.Errorf("placed at %s, the other finds it at %s with %d characters warm", d.Chosen, again.Chosen, again.Warm)
	}
}

// A conversation that grows is told of once: each time what is new.
func TestOnlyNewLevelsAreTold(t *testing.T) {
	w := newWorld(2, AutoConcurrencyThreshold)
	w.router.Share(true)
	for i, c := range []struct{ levels, want int }{{10, 10}, {10, 0}, {14, 4}} {
		w.send(prompt("talk", c.levels))
		got := 0
		w.router.Placed(func(_ string, levels []uint64) { got += len(levels) })
		if got != c.want {
			t.Errorf("request %d: %d levels are told, want %d", i, got, c.want)
		}
	}
	w.router.Share(false)
	w.send(prompt("other", 20))
	w.router.Placed(func(string, []uint64) { t.Error("told although nothing is shared") })
}

// What is told of an endpoint that may not be chosen changes nothing.
func TestStrangersAreIgnored(t *testing.T) {
	w := newWorld(2, AutoConcurrencyThreshold)
	w.router.GiveElsewhere("192.0.2.1:80", 1, 1e9)
	w.router.PlaceElsewhere("192.0.2.1:80", prompt("x", 3))
	if d := w.send(prompt("x", 3)); d.Warm != 0 {
		t.Errorf("warm by a stranger: %+v", d)
	}
}

// Routers that share leave the homes sooner than those that do not, and later than
// one alone.
func TestSharingIsBetween(t *testing.T) {
	w := newWorld(3, AutoConcurrencyThreshold)
	stray := func(n int, sharing bool) float64 {
		w.router.SetRouters(n, sharing)
		return w.router.Table().stray
	}
	if alone, sharing, apart := stray(1, true), stray(3, true), stray(3, false); alone >= sharing || sharing >= apart {
		t.Errorf("alone %v, sharing %v, apart %v", alone, sharing, apart)
	}
}
