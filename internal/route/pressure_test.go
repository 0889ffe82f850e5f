package route

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/internal/affinity"
)

// crowd has each endpoint run a request with a prompt of so many characters, all of
// them warm but for cold ones at the address.
func (w *world) crowd(chars int64, address string, cold int64) {
	for _, c := range w.router.Table().candidates {
		slot, _ := c.counter.Take()
		slot.Bring(chars, 0)
		if c.address == address {
			slot.Bring(chars, cold)
		}
	}
}

// A new conversation avoids the endpoint whose requests have brought most, its home or
// not, if long prompts run everywhere. If not, it goes home.
func TestPressure(t *testing.T) {
	for _, test := range []struct {
		chars, cold int64
		home        bool
	}{
		{0, 0, true},
		{crowded - 100_000, 1 << 40, true}, // with the prompt itself still below
		{2 * crowded, 0, true},
		{2 * crowded, 100_000_000, false},
		{10 * crowded, 1_000_000, false},
	} {
		t.Run(fmt.Sprint(test.chars, " ", test.cold), func(t *testing.T) {
			talk := prompt("talk", 40)
			plain, full := newWorld(4, AutoConcurrencyThreshold), newWorld(4, AutoConcurrencyThreshold)
			home := plain.send(talk).Chosen
			full.crowd(test.chars, home, test.cold)
			if d := full.send(talk); (d.Chosen == home) != test.home {
				t.Errorf("goes to %s (%s), home is %s", d.Chosen, d.Reason, home)
			}
		})
	}
}

// A conversation that is warm stays where it is, whatever has been brought there: to
// prefill it all again elsewhere would need more of the memory that is short.
func TestPressureMovesNobodyWhoIsWarm(t *testing.T) {
	w := newWorld(4, AutoConcurrencyThreshold)
	home := w.send(prompt("talk", 200)).Chosen
	w.crowd(10*crowded, home, 10*crowded)
	w.now += 5e9 // its own prefill is over
	if d := w.send(prompt("talk", 200, "on", 1)); d.Chosen != home {
		t.Errorf("goes to %s (%s), warm at %s", d.Chosen, d.Reason, home)
	}
}

// Up to the limit the factor is 1 to the last bit, whatever has been brought, and it
// grows from there without a jump.
func TestPressureBeginsGently(t *testing.T) {
	w := newWorld(2, AutoConcurrencyThreshold)
	table := w.router.Table()
	a, b := &table.candidates[0], &table.candidates[1]
	slot, _ := a.counter.Take()
	other, _ := b.counter.Take()
	before := 1.0
	for _, chars := range []int64{0, 1, crowded, crowded + 1, 2 * crowded, 1 << 50} {
		slot.Bring(2*chars, 50_000_000)
		p := table.pressure()
		f := p.factor(a)
		if chars <= crowded && f != 1 {
			t.Errorf("%d characters: factor %v, want 1", chars, f)
		}
		if f < before || chars == crowded+1 && f > 1.000001 {
			t.Errorf("%d characters: factor %v after %v", chars, f, before)
		}
		if g := p.factor(b); chars > crowded && g >= 1 {
			t.Errorf("%d characters: factor %v of the other", chars, g)
		}
		before = f
	}
	if want := 51.0 / 26; before < 0.999*want || before > want {
		t.Errorf("factor %g with very many, want %g", before, want)
	}
	other.Release()
}

// Decisions bring the prompt and what of it is cold, and when all requests have ended
// nothing is left, also at an endpoint that was away meanwhile.
func TestNothingIsLeftAtRest(t *testing.T) {
	w := newWorld(4, AutoConcurrencyThreshold)
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 600 {
		if i%100 == 50 {
			w.router.SetMembership(setOf(endpoints(3 + i/100%2)...))
		}
		w.send(prompt("system", 4, fmt.Sprint("talk", random.IntN(50)), 1+random.IntN(60)))
	}
	brought := func() (prompts, colds int64) {
		for _, c := range w.router.Loads().Snapshot() {
			counter, _ := w.router.Loads().Lookup(c.Address)
			prompt, cold := counter.Brought()
			prompts, colds = prompts+prompt, colds+cold
		}
		return prompts, colds
	}
	if prompts, colds := brought(); colds <= 0 || prompts <= colds {
		t.Errorf("%d requests have brought %d characters, %d cold", len(w.running), prompts, colds)
	}
	for i := range w.running {
		w.running[i].Release()
	}
	if prompts, colds := brought(); prompts != 0 || colds != 0 {
		t.Errorf("at rest: %d characters, %d cold", prompts, colds)
	}
}

func TestBringsWhatIsCold(t *testing.T) {
	w := newWorld(4, AutoConcurrencyThreshold)
	for _, turn := range []struct{ levels, cold int }{{10, 10}, {16, 6}, {16, 0}} {
		d, slot := w.router.Table().Pick(ask(prompt("talk", turn.levels), int64(turn.levels)))
		counter, _ := w.router.Loads().Lookup(d.Chosen)
		if prompt, cold := counter.Brought(); prompt != int64(turn.levels)*LevelChars || cold != int64(turn.cold)*LevelChars {
			t.Errorf("%d levels: %d characters, %d cold, want %d", turn.levels, prompt, cold, turn.cold*LevelChars)
		}
		slot.Release()
	}
}

// What is behind the levels is warm if these are, as in a conversation; but not if they
// are the beginning of many prompts. And no request counts for more than engines read.
func TestBringsWhatIsBehindTheLevels(t *testing.T) {
	const levels = affinity.MaxLevels
	brought := func(w *world, request Request) int64 {
		d, slot := w.router.Table().Pick(request)
		defer slot.Release()
		counter, _ := w.router.Loads().Lookup(d.Chosen)
		prompt, cold := counter.Brought()
		if prompt < cold || prompt > longest {
			t.Errorf("%d characters of which %d are cold", prompt, cold)
		}
		return cold
	}
	request := func(text []uint64, tail string, chars int, now int64) Request {
		r := ask(text, now)
		r.Chars += chars
		r.Key = xxhash.Sum64String(fmt.Sprint(r.Key, tail))
		return r
	}
	w := newWorld(2, AutoConcurrencyThreshold)
	head := prompt("head", levels)
	if n := brought(w, request(head, "0", 50_000, 1e9)); n != levels*LevelChars+50_000 {
		t.Errorf("at first %d characters", n)
	}
	if n := brought(w, request(head, "0 and more", 60_000, 2e9)); n != 0 {
		t.Errorf("the conversation goes on: %d characters", n)
	}
	for i := range int64(40) { // all have it: it is no conversation
		brought(w, request(head, fmt.Sprint("tail ", i), 50_000, (3+i)*1e9))
	}
	if n := brought(w, request(head, "another", 50_000, 50e9)); n != 50_000 {
		t.Errorf("a tail of its own: %d characters", n)
	}
	if n := brought(w, request(prompt("other", levels), "", 1<<40, 51e9)); n != longest {
		t.Errorf("an endless one: %d characters", n)
	}
}

// An endpoint that has been brought nothing is at most half as dear.
func TestPressureHasALeastFactor(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	candidates := w.router.Table().candidates
	for i := range candidates[1:] {
		slot, _ := candidates[i+1].counter.Take()
		slot.Bring(1<<50, 1<<50)
	}
	p := w.router.Table().pressure()
	if f := p.factor(&candidates[0]); f < leastFactor || f > leastFactor*1.01 {
		t.Errorf("factor %g", f)
	}
}

func TestPickUnderPressureDoesNotAllocate(t *testing.T) {
	w := newWorld(16, AutoConcurrencyThreshold)
	w.crowd(2*crowded, endpoints(1)[0].Address, 1_000_000)
	allocatesNothing(t, w.router.Table())
}
