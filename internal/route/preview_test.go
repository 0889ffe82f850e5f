package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/load"
)

// What a preview says is what the next request gets, under every strategy, with zones
// and adapters, and a preview leaves nothing behind.
func TestPreviewIsWhatPickDecides(t *testing.T) {
	policies := []Policy{
		{Strategy: Random},
		{Strategy: LeastOutstandingRequests},
		{Strategy: PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 3},
		{Strategy: PrefixAware, PrefixLength: 1024},
		autoPolicy(AutoConcurrencyThreshold), autoPolicy(2),
		{Strategy: KVAware, PrefixLength: AutoPrefixLength},
	}
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		list := endpoints(rapid.IntRange(0, 12).Draw(t, "endpoints"))
		for i := range list {
			list[i].Zone = fmt.Sprint(i % 3)
			list[i].Weight = uint32(1 + i%2)
		}
		r := NewRouter(rapid.SampledFrom(policies).Draw(t, "policy"))
		r.SetZone(rapid.SampledFrom([]string{"", "0"}).Draw(t, "zone"))
		r.SetAdapters(AdapterRules{Sticky: rapid.IntRange(0, 3).Draw(t, "sticky"), Models: []string{"tuned*"}})
		r.SetMembership(setOf(list...))
		var running []load.Reservation
		for now := range rapid.IntRange(1, 60).Draw(t, "requests") {
			request := ask(prompt("system", random.IntN(30)+1, fmt.Sprint("user", random.IntN(3)), random.IntN(40)+1), int64(now)*1e7)
			request.Keyed, request.Random = random.IntN(8) > 0, random.Uint64()
			if random.IntN(2) == 0 { // there are a few who fill the endpoints' memory
				request.Chars += 8_000_000
			}
			request.Model = []string{"base", "tuned-1", "tuned-2"}[random.IntN(3)]
			first, again := r.Preview(request), r.Preview(request)
			decided, slot := r.Table().Pick(request)
			for _, preview := range []Decision{first, again} {
				if diff := cmp.Diff(decided, preview, cmp.AllowUnexported(Decision{})); diff != "" {
					t.Fatalf("request %d, decided (-) and previewed (+):\n%s", now, diff)
				}
			}
			if running = append(running, slot); len(running) > 20 {
				running[0].Release()
				running = running[1:]
			}
		}
	})
}

// A preview of a large fleet's router is made without the memory's size being taken.
func TestPreviewIsSmall(t *testing.T) {
	w := newWorld(64, AutoConcurrencyThreshold)
	for i := range 50 {
		w.send(prompt("system", 20, fmt.Sprint(i), 30))
	}
	request := ask(prompt("system", 20, "3", 30), w.now)
	before := w.router.memory.Bytes()
	bytes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.router.Preview(request)
		}
	}).AllocedBytesPerOp()
	if limit := int64(2 << 20); bytes > limit || int64(before) < 2*limit {
		t.Errorf("a preview takes %d bytes, want at most %d; the memory has %d", bytes, limit, before)
	}
}

// The hot prefixes are those at which the requests part, the hottest first, with as many
// homes as they need and endpoints that have served them.
func TestHotPrefixes(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	if got := w.router.HotPrefixes(20); len(got) != 0 {
		t.Errorf("before a request: %v", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 800 { // half of all begin with one system prompt, a quarter with another
		switch {
		case i%2 == 0:
			w.send(prompt("large", 24, "document", 9, fmt.Sprint("question", random.Int64()), 2))
		case i%4 == 1:
			w.send(prompt("small", 10, fmt.Sprint("question", random.Int64()), 3))
		default:
			w.send(prompt(fmt.Sprint("own", random.Int64()), 6))
		}
	}
	got := w.router.HotPrefixes(20)
	if len(got) != 2 {
		t.Fatalf("%d hot prefixes, want the two that are common: %+v", len(got), got)
	}
	for i, want := range []struct {
		key          uint64
		depth, homes int
		share        float64
	}{
		{prompt("large", 24, "document", 9)[31], 32 * LevelChars, 4, 0.5},
		{prompt("small", 10)[9], 10 * LevelChars, 2, 0.25},
	} {
		p := got[i]
		if p.Key != want.key || p.Depth != want.depth || p.Share < want.share*0.9 || p.Share > want.share*1.1 || p.Homes < want.homes || p.Homes > want.homes+1 {
			t.Errorf("%d: %+v, want %+v", i, p, want)
		}
		if len(p.Holders) < 1 || len(p.Holders) > 8 || !slices.Contains(p.Holders, w.send(prompt("large", 24, "document", 9)).Chosen) && i == 0 {
			t.Errorf("%d: held by %v", i, p.Holders)
		}
	}
	if got := w.router.HotPrefixes(1); len(got) != 1 || got[0].Depth != 32*LevelChars {
		t.Errorf("the one at the top is %+v", got)
	}
	w.router.SetMembership(setOf(endpoints(10)[8:]...))
	if got := w.router.HotPrefixes(20); len(got) != 0 {
		t.Errorf("nobody who has served one is left, and hot are %+v", got)
	}
}

// The bounds are those by which the router decides.
func TestBoundsOfEndpoints(t *testing.T) {
	r := NewRouter(Policy{Strategy: PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 7})
	r.SetMembership(setOf(endpoints(3)...))
	d, _ := r.Table().Pick(Request{Key: 1, Keyed: true})
	n := 0
	r.Bounds(func(address string, load, bound int64) {
		n++
		want := int64(0)
		if address == d.Chosen {
			want = 1
		}
		if load != want || bound != 7 {
			t.Errorf("%s: %d of %d, want %d of 7", address, load, bound, want)
		}
	})
	if n != 3 {
		t.Errorf("%d endpoints", n)
	}
}
