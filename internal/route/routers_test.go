package route

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/internal/affinity"
	"github.com/warmpath/warmpath/internal/fleet"
)

// fleetOf is several routers with one fleet that do not know of each other.
func fleetOf(routers, endpoints int) []*world {
	list := make([]*world, routers)
	for i := range list {
		list[i] = newWorld(endpoints, AutoConcurrencyThreshold)
		list[i].router.SetRouters(routers, false)
	}
	return list
}

// busiest returns the largest count over the mean.
func busiest(counts map[string]int, endpoints int) float64 {
	most, sum := 0, 0
	for _, n := range counts {
		most, sum = max(most, n), sum+n
	}
	return float64(most) * float64(endpoints) / float64(sum)
}

// A short question behind a long common prompt ends before the next level that is
// looked at: it spreads all the same, with many routers too, each of which has
// next to nothing to do.
func TestShortTailsSpread(t *testing.T) {
	for _, routers := range []int{1, 8, 32} {
		list := fleetOf(routers, 8)
		random := rand.New(rand.NewPCG(5, 6))
		counts := make(map[string]int)
		for i := range 3000 {
			levels := prompt("system", 16, fmt.Sprint("question", i), 1)
			w := list[random.IntN(routers)]
			w.now += 1e9
			d, slot := w.router.Table().Pick(ask(levels, w.now))
			slot.Release()
			if i > 1000 {
				counts[d.Chosen]++
			}
		}
		if b := busiest(counts, 8); b > 1.4 {
			t.Errorf("%d routers: the busiest endpoint has %.2f times the mean: %v", routers, b, counts)
		}
	}
}

// Routers that have just started agree with those that have not: what is common is
// not given one home because little is known of it.
func TestYoungRoutersSpread(t *testing.T) {
	counts := make(map[string]int)
	for r := range 40 {
		w := newWorld(16, AutoConcurrencyThreshold)
		w.router.SetRouters(40, false)
		for i := range 24 {
			d := w.send(prompt("system", 4, fmt.Sprint("document", r*24+i), 20))
			if i >= 6 {
				counts[d.Chosen]++
			}
		}
	}
	if b := busiest(counts, 16); b > 1.8 {
		t.Errorf("the busiest endpoint has %.2f times the mean: %v", b, counts)
	}
}

// Two routers stay with the homes where one alone would spread a long prompt that
// nobody has: they would not find again what the other has placed.
func TestSeveralRoutersStayAtHome(t *testing.T) {
	for routers, want := range map[int]bool{1: false, 2: true} {
		w := newWorld(4, AutoConcurrencyThreshold)
		w.router.SetRouters(routers, false)
		away := false
		for i := range 40 { // one conversation after another has the same home
			levels := prompt("talk", 60, fmt.Sprint(i), 60)
			d, slot := w.router.Table().Pick(ask(levels, 1e9+int64(i)*1e6))
			slot.Release()
			away = away || d.Rank != 0
		}
		if !away == want {
			continue
		}
		t.Errorf("%d routers: left the homes %v", routers, away)
	}
}

// Relief is for homes that have too much to do, Overflow for those that are full.
func TestReliefAndOverflow(t *testing.T) {
	full := newWorld(4, 2)
	levels := prompt("hot", 16)
	var reasons []Reason
	for i := range 5 {
		d, _ := full.router.Table().Pick(ask(levels, int64(i)))
		reasons = append(reasons, d.Reason)
	}
	if reasons[0] != Home || reasons[1] != Home || reasons[2] != Overflow {
		t.Errorf("two at once at most: %v", reasons)
	}
	busy := newWorld(4, AutoConcurrencyThreshold)
	first, slot := busy.router.Table().Pick(ask(levels, 1))
	slot.Release()
	m := busy.router.memory
	m.Give(m.ID(first.Chosen), 1, 300e9)
	if d, _ := busy.router.Table().Pick(ask(levels, 2)); d.Reason != Relief || d.Chosen == first.Chosen || d.Rank != 1 {
		t.Errorf("the home is busy for five minutes: %+v", d)
	}
}

// When all are full the cheapest takes it, not the most expensive.
func TestSaturatedGoesToTheCheapest(t *testing.T) {
	w := newWorld(3, 1)
	table := w.router.Table()
	home := ""
	for i := range 3 {
		d, _ := table.Pick(ask(prompt("all", 16), int64(i)))
		if i == 0 {
			home = d.Chosen
		}
	}
	m := w.router.memory
	for _, c := range table.candidates {
		if c.address != home {
			m.Give(m.ID(c.address), 3, 60e9)
		}
	}
	if d, _ := table.Pick(ask(prompt("all", 16), 4)); d.Reason != Saturated || d.Chosen != home {
		t.Errorf("all are full, the home has least to do: %+v", d)
	}
}

// An endpoint of twice the weight is busy half as long with the same prompt.
func TestHeavierEndpointsAreSoonerDone(t *testing.T) {
	for _, weight := range []uint32{1, 4} {
		list := endpoints(2)
		list[0].Weight, list[1].Weight = weight, weight
		router := NewRouter(autoPolicy(AutoConcurrencyThreshold))
		router.SetMembership(setOf(append(list, fleet.Endpoint{Address: "10.9.9.9:80", Weight: 1})...))
		table := router.Table()
		for i := range 200 {
			levels := prompt(fmt.Sprint("one", i), 64)
			d, slot := table.Pick(ask(levels, int64(i)*60e9))
			slot.Release()
			id := table.candidateOf(router.memory.ID(d.Chosen))
			c := &table.candidates[id]
			wait := router.memory.Wait(c.id, int64(i)*60e9)
			want := float64(64*LevelChars) / charsPerSecond * c.perSpeed * 1e9
			if d.Warm == 0 && (float64(wait) < 0.99*want || float64(wait) > 1.01*want) {
				t.Fatalf("weight %d: busy for %d ns, want %.0f", weight, wait, want)
			}
		}
	}
}

// A prompt that goes on behind what is looked at is taken to be warm to its end
// where all that is looked at is.
func TestPromptsBeyondTheLevels(t *testing.T) {
	w := newWorld(4, AutoConcurrencyThreshold)
	r := ask(prompt("long", affinity.MaxLevels), 1)
	r.Chars = 1 << 20
	first, slot := w.router.Table().Pick(r)
	slot.Release()
	again, slot := w.router.Table().Pick(r)
	slot.Release()
	if first.Warm != 0 || again.Chosen != first.Chosen || again.Warm != r.Chars {
		t.Errorf("first %+v, then %+v", first, again)
	}
}
