package route

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// Each prompt has homes for its part of the requests, whether it ends with a level
// or with a tail behind the last one.
func TestHomesByShare(t *testing.T) {
	const n, requests = 8, 2000
	for _, tc := range []struct {
		name  string
		of    func(kind, now int64) Request
		depth int
	}{
		{"levels", func(kind, now int64) Request { return ask(prompt(fmt.Sprint("talk", kind), 4), now) }, 256},
		{"tails", func(kind, now int64) Request { // behind the same levels
			r := ask(prompt("system", 4), now)
			r.Key, r.Chars = xxhash.Sum64String(fmt.Sprint("tail", kind)), r.Chars+100
			return r
		}, 0},
		{"shorter than a level", func(kind, now int64) Request {
			return Request{Key: xxhash.Sum64String(fmt.Sprint("short", kind)), Keyed: true, Chars: 100, Now: now}
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(n, AutoConcurrencyThreshold)
			for i := range requests {
				w.now += 10e6
				kind := int64(0) // six of ten
				if i%10 >= 6 {
					kind = 1
				}
				d, slot := w.router.Table().Pick(tc.of(kind, w.now))
				slot.Release()
				if i < requests/2 {
					continue
				}
				want := []float64{.6, .4}[kind]
				if math.Abs(d.Share-want) > .05 || d.Depth != tc.depth {
					t.Fatalf("request %d: %.3f of the requests begin with %d characters, want %.1f with %d", i, d.Share, d.Depth, want, tc.depth)
				}
				if homes := int(math.Ceil(d.Share * n)); d.HomeCount != homes {
					t.Fatalf("request %d: %d homes for %.3f of the requests, want %d", i, d.HomeCount, d.Share, homes)
				}
			}
		})
	}
}

// The homes that are told are the homes, then the others in the order of the key;
// the first of those has rank 1. That holds for whichever endpoints they are.
func TestToldHomes(t *testing.T) {
	w := newWorld(5, 1)
	w.warmUp(400)
	for _, slot := range w.running {
		slot.Release()
	}
	w.running = nil
	seen := make(map[string]bool)
	for i := range 60 {
		w.now += 1e9
		r := ask(prompt(fmt.Sprint("alone", i), 6), w.now)
		first, held := w.router.Table().Pick(r)
		if first.HomeCount != 1 || len(first.Homes()) != MaxChoices {
			t.Fatalf("%+v", first)
		}
		order := w.router.Table().Order(first.Key)
		want := append([]string{first.Homes()[0]}, without(order, first.Homes()[0])...)[:MaxChoices]
		for k, home := range first.Homes() {
			if home != want[k] {
				t.Fatalf("homes %v, want %v", first.Homes(), want)
			}
		}
		// The home is full now, and nobody else is warm: the next of the order.
		second, slot := w.router.Table().Pick(r)
		if second.Chosen != want[1] || second.Rank != 1 {
			t.Errorf("behind the home %s comes %s of rank %d, want %s", first.Chosen, second.Chosen, second.Rank, want[1])
		}
		seen[want[1]] = true
		slot.Release()
		held.Release()
	}
	if len(seen) != 5 {
		t.Errorf("%d of 5 endpoints were second", len(seen))
	}
}

func without(list []string, one string) (others []string) {
	for _, s := range list {
		if s != one {
			others = append(others, s)
		}
	}
	return others
}

// The home of a conversation is one of the homes of what it has in common with
// others, also where the order of its own key begins with none of them.
func TestHomesAreNested(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	common := make(map[string]bool)
	elsewhere := 0
	for i := range 1500 {
		system := "most"
		if i%5 == 4 {
			system = "few" // a fifth of the requests has ceil(8/5) homes
		}
		d := w.send(prompt(system, 8, fmt.Sprint("talk", i), 4))
		if i < 1000 || system == "most" {
			continue
		}
		homes := d.Homes()
		if d.HomeCount != 1 || len(homes) != MaxChoices {
			t.Fatalf("%+v", d)
		}
		common[homes[0]] = true
		if order := w.router.Table().Order(d.Key); homes[0] != order[0] && homes[0] != order[1] && homes[0] != order[2] {
			elsewhere++
		}
	}
	if len(common) != 2 || elsewhere == 0 {
		t.Errorf("%d endpoints are homes of a fifth of the requests, want 2; %d were not among the first three of the key, want some", len(common), elsewhere)
	}
}

// Where all endpoints are homes the first that are told are those of the key's order.
func TestAllAreHomes(t *testing.T) {
	w := newWorld(8, AutoConcurrencyThreshold)
	for i := range 300 {
		d := w.send(prompt("the same", 6))
		if i < 100 {
			continue
		}
		if d.Share < .9 || d.Depth == 0 {
			t.Fatalf("%.2f of the requests begin with %d characters, all do", d.Share, d.Depth)
		}
		if order := w.router.Table().Order(d.Key); d.HomeCount != 8 || !slices.Equal(d.Homes(), order[:MaxChoices]) {
			t.Fatalf("%d homes %v, want 8 and %v", d.HomeCount, d.Homes(), order[:MaxChoices])
		}
	}
}

// An endpoint that is four times as fast gets about four times the new prompts.
func TestWorkByWeight(t *testing.T) {
	list := endpoints(4)
	list[2].Weight = 4
	router := NewRouter(autoPolicy(AutoConcurrencyThreshold))
	router.SetMembership(setOf(list...))
	w := &world{router: router}
	const requests = 4000
	heavy := 0
	for i := range requests {
		if d := w.send(prompt(fmt.Sprint("nobody else's", i), 40)); d.Chosen == list[2].Address {
			heavy++
		}
	}
	if share := float64(heavy) / requests; share < .5 || share > .65 {
		t.Errorf("%.3f of the requests went to the endpoint with 4 of 7 parts", share)
	}
}

// The bound is for what the cost does not see: 32 more than the mean, or twice as many.
func TestLooseBound(t *testing.T) {
	for _, tc := range []struct {
		running int
		bound   int64
	}{
		{0, 33}, // the mean, with the request, is an eighth
		{8 * 10, 43},
		{8 * 100, 201},
	} {
		w := newWorld(8, AutoConcurrencyThreshold)
		for i := range 8 {
			for range tc.running / 8 {
				w.router.Loads().Counter(endpoints(8)[i].Address).Take()
			}
		}
		if d := w.send(prompt("one", 4)); d.Bound != tc.bound {
			t.Errorf("with %d running the bound is %d, want %d", tc.running, d.Bound, tc.bound)
		}
	}
}
