package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
)

func autoPolicy(threshold int) Policy {
	return Policy{Strategy: PrefixAware, PrefixLength: AutoPrefixLength, ConcurrencyThreshold: threshold}
}

// prompt is the levels of a text that is given as parts: words that stand for so
// many levels.
func prompt(parts ...any) (levels []uint64) {
	h := uint64(1)
	for i := 0; i < len(parts); i += 2 {
		for j := range parts[i+1].(int) {
			h = xxhash.Sum64String(fmt.Sprint(h, parts[i], j))
			levels = append(levels, h)
		}
	}
	return levels
}

func ask(levels []uint64, now int64) Request {
	return Request{Key: levels[len(levels)-1], Keyed: true, Levels: levels, Chars: len(levels) * LevelChars, Now: now, Random: next(uint64(now))}
}

// world is a router in use: requests come 10 ms apart and last as long as 40 more.
type world struct {
	router  *Router
	now     int64
	running []load.Reservation
}

func newWorld(n int, threshold int) *world {
	w := &world{router: NewRouter(autoPolicy(threshold))}
	w.router.SetMembership(setOf(endpoints(n)...))
	return w
}

func (w *world) send(levels []uint64) Decision {
	w.now += 10e6
	d, slot := w.router.Table().Pick(ask(levels, w.now))
	if w.running = append(w.running, slot); len(w.running) > 40 {
		w.running[0].Release()
		w.running = w.running[1:]
	}
	return d
}

// warmUp is traffic of many users with one system prompt.
func (w *world) warmUp(n int) {
	for i := range n {
		w.send(prompt("system", 30, fmt.Sprint("user", i), 4))
	}
}

// A system prompt that all have in common does not choose; the conversation
// behind it does, and keeps its home as it grows.
func TestConversationsKeepTheirHome(t *testing.T) {
	for _, n := range []int{8, 24} { // more than are remembered to have a beginning
		t.Run(fmt.Sprint(n), func(t *testing.T) { conversations(t, n) })
	}
}

func conversations(t *testing.T, endpoints int) {
	t.Helper()
	w := newWorld(endpoints, AutoConcurrencyThreshold)
	w.warmUp(600)
	chosen := make(map[string]int)
	for c := range 40 {
		var home string
		for turn := range 6 {
			d := w.send(prompt("system", 30, fmt.Sprint("talk", c), 3+3*turn))
			if turn == 0 {
				home = d.Chosen
				chosen[home]++
			}
			if d.Chosen != home {
				t.Errorf("talk %d, turn %d: %s (%s), before at %s", c, turn, d.Chosen, d.Reason, home)
			}
			if d.HomeCount != 1 || d.Depth != 32*LevelChars || turn > 0 && d.Warm < 30*LevelChars {
				t.Errorf("talk %d, turn %d: %+v", c, turn, d)
			}
		}
	}
	if len(chosen) < 7 {
		t.Errorf("40 conversations have %d homes of %d: %v", len(chosen), endpoints, chosen)
	}
}

// A prompt with 60 % of all requests gets as many homes as that takes, no endpoint
// far more than its part, and gives them back when it has cooled down.
func TestHotPrefix(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	random := rand.New(rand.NewPCG(1, 2))
	hot := prompt("hot", 32)
	counts := make(map[string]int)
	homes := 0
	for i := range 4000 {
		levels := hot
		if random.IntN(10) >= 6 {
			levels = prompt(fmt.Sprint("other", random.IntN(400)), 32)
		}
		d := w.send(levels)
		if i < 1000 {
			continue // until it is known that it is hot
		}
		counts[d.Chosen]++
		if &levels[0] == &hot[0] {
			homes = max(homes, d.HomeCount)
		}
	}
	if homes < 5 || homes > 6 {
		t.Errorf("%d homes for 60 %% of the requests, want 5", homes)
	}
	for address, n := range counts {
		if float64(n) > 1.3*3000/8 {
			t.Errorf("%s got %d of 3000 requests: %v", address, n, counts)
		}
	}
	for i := range 3000 {
		w.send(prompt(fmt.Sprint("other", i%400), 32))
	}
	if d := w.send(hot); d.HomeCount != 1 {
		t.Errorf("it has cooled down and has %d homes", d.HomeCount)
	}
}

// Routers that do not know of each other choose alike.
func TestRoutersAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var routers []*world
	for range 4 {
		w := newWorld(8, AutoConcurrencyThreshold)
		w.router.SetRouters(4, false)
		routers = append(routers, w)
	}
	homes, same, all := make(map[string]string), 0, 0
	for i := range 8000 {
		talk := fmt.Sprint("talk", random.IntN(300))
		d := routers[random.IntN(4)].send(prompt("system", 20, talk, 4+i%5))
		if i > 2000 {
			if home, ok := homes[talk]; ok {
				all++
				if home == d.Chosen {
					same++
				}
			}
		}
		homes[talk] = d.Chosen
	}
	// Each has counts of its own, and few in the beginning.
	if float64(same) < 0.9*float64(all) {
		t.Errorf("%d of %d requests went where their conversation had been", same, all)
	}
}

// Whatever happens at the same time, no endpoint gets more than the bound while
// another has room.
func TestAutoBoundHolds(t *testing.T) {
	const threshold = 5
	router := NewRouter(autoPolicy(threshold))
	router.SetMembership(setOf(endpoints(4)...))
	var wg sync.WaitGroup
	var mu sync.Mutex
	reasons := make(map[Reason]int)
	for g := range 4 {
		wg.Go(func() {
			for i := range 5 {
				d, _ := router.Table().Pick(ask(prompt("the same", 12), int64(g*5+i)))
				mu.Lock()
				reasons[d.Reason]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, c := range router.Loads().Snapshot() {
		if c.Outstanding != threshold {
			t.Errorf("%s has %d, want %d", c.Address, c.Outstanding, threshold)
		}
	}
	if reasons[Saturated] != 0 {
		t.Errorf("%v, but there was room for all", reasons)
	}
	if d, _ := router.Table().Pick(ask(prompt("the same", 12), 99)); d.Reason != Saturated || d.Load != threshold {
		t.Errorf("all are full: %+v", d)
	}
}

// Where all else is equal an endpoint that joins takes keys over, and no other
// endpoint gets any.
func TestJoiningMovesKeysToTheNewOneOnly(t *testing.T) {
	before, after := newWorld(7, AutoConcurrencyThreshold), newWorld(8, AutoConcurrencyThreshold)
	before.warmUp(300)
	after.warmUp(300)
	newest := endpoints(8)[7].Address
	moved := 0
	for i := range 2000 {
		levels := prompt("system", 30, fmt.Sprint("talk", i), 3)
		a, b := before.send(levels), after.send(levels)
		switch {
		case a.Homes()[0] == b.Homes()[0]:
		case b.Homes()[0] == newest:
			moved++
		default:
			t.Fatalf("%d: home was %s, is %s", i, a.Homes()[0], b.Homes()[0])
		}
	}
	if moved < 150 || moved > 350 {
		t.Errorf("%d of 2000 keys moved, want about 250", moved)
	}
}

// A short prompt has no level: all of it is the key.
func TestShortPrompts(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	w.warmUp(300)
	homes := make(map[string]bool)
	for i := range 60 {
		r := Request{Key: xxhash.Sum64String(fmt.Sprint(i % 20)), Keyed: true, Chars: 100, Now: w.now}
		d, slot := w.router.Table().Pick(r)
		slot.Release()
		if d.HomeCount != 1 || d.Depth != 0 || len(d.Choices()) != MaxChoices {
			t.Errorf("%+v", d)
		}
		homes[d.Homes()[0]] = true
	}
	if len(homes) < 5 {
		t.Errorf("20 prompts have %d homes", len(homes))
	}
}

// What was warm before an endpoint was added stays where it is warm.
func TestWarmAfterScaling(t *testing.T) {
	w := newWorld(7, AutoConcurrencyThreshold)
	w.warmUp(300)
	was := make(map[int]string)
	for i := range 200 {
		was[i] = w.send(prompt("system", 30, fmt.Sprint("talk", i), 20)).Chosen
	}
	w.router.SetMembership(setOf(endpoints(8)...))
	reasons := make(map[Reason]int)
	for i := range 200 {
		d := w.send(prompt("system", 30, fmt.Sprint("talk", i), 24))
		reasons[d.Reason]++
		if d.Chosen != was[i] {
			t.Errorf("talk %d went to %s (%s), it is warm at %s", i, d.Chosen, d.Reason, was[i])
		}
	}
	if reasons[WarmElsewhere] < 5 {
		t.Errorf("%v: some have a new home", reasons)
	}
}

func TestAutoDoesNotAllocate(t *testing.T) {
	w := newWorld(16, AutoConcurrencyThreshold)
	allocatesNothing(t, w.router.Table())
}

// allocatesNothing picks for one long prompt again and again.
func allocatesNothing(t *testing.T, table *Table) {
	t.Helper()
	levels := prompt("a", 128)
	now := int64(0)
	if n := testing.AllocsPerRun(200, func() {
		now += 1e6
		_, slot := table.Pick(ask(levels, now))
		slot.Release()
	}); n != 0 {
		t.Errorf("%v allocations a pick", n)
	}
}

// Endpoints come and go while requests are decided.
func TestAutoWhileTheMembershipChanges(t *testing.T) {
	router := NewRouter(autoPolicy(AutoConcurrencyThreshold))
	router.SetMembership(setOf(endpoints(6)...))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				table := router.Table()
				d, slot := table.Pick(ask(prompt("system", 8, fmt.Sprint(g, i%50), 4), int64(i)))
				if d.Chosen == "" || !slices.ContainsFunc(table.candidates, func(c candidate) bool { return c.address == d.Chosen }) {
					t.Errorf("chosen %q", d.Chosen)
				}
				slot.Release()
			}
		})
	}
	for i := range 200 {
		list := endpoints(12)
		router.SetMembership(setOf(slices.Concat(list[i%5:i%5+4], []fleet.Endpoint{list[9]})...))
	}
	close(done)
	wg.Wait()
	for _, c := range router.Loads().Snapshot() {
		if c.Outstanding != 0 {
			t.Errorf("%s has %d", c.Address, c.Outstanding)
		}
	}
}

// BenchmarkAuto is a pick for a prompt of 32 Ki characters, the levels given.
func BenchmarkAuto(b *testing.B) {
	for _, n := range []int{8, 16, 128, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(n, AutoConcurrencyThreshold)
			prompts := make([][]uint64, 512)
			for i := range prompts {
				prompts[i] = prompt("system", 30, fmt.Sprint("talk", i), 98)
			}
			table := w.router.Table()
			b.ReportAllocs()
			now := int64(0)
			for i := 0; b.Loop(); i++ {
				now += 1e6
				_, slot := table.Pick(ask(prompts[i%len(prompts)], now))
				slot.Release()
			}
		})
	}
}
