package trial

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The part of the conversations that is in a share is the share, every turn of one is
// where its first is, and a larger share has all that a smaller one has.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Float64Range(0, 1).Draw(t, "small")
		large := rapid.Float64Range(small, 1).Draw(t, "large")
		s := Settings{Share: small, ShareLength: 5 * 256}
		a := newShare(s, splitSalt)
		s.Share = large
		b := newShare(s, splitSalt)
		n, in := 2000, 0
		for conversation := range n {
			first := prompt(1, conversation, 1)
			has := a.has(first.Levels, first.Key)
			if has {
				in++
			}
			if has && !b.has(first.Levels, first.Key) {
				t.Fatalf("conversation %d is in %v of all and not in %v", conversation, small, large)
			}
			if later := prompt(1, conversation, 4); a.has(later.Levels, later.Key) != has {
				t.Fatalf("conversation %d changes sides", conversation)
			}
		}
		if got := float64(in) / float64(n); math.Abs(got-small) > 4*math.Sqrt(0.25/float64(n)) {
			t.Fatalf("%v of the conversations, want %v", got, small)
		}
	})
}

// With one system prompt for all that is longer than the share length, all
// conversations begin alike: they are in the share together or not at all.
func TestShareOfOneBeginning(t *testing.T) {
	s := newShare(Settings{Share: 0.5, ShareLength: 256}, splitSalt)
	first := prompt(1, 0, 1)
	for conversation := range 50 {
		r := prompt(1, conversation, 1)
		if s.has(r.Levels, r.Key) != s.has(first.Levels, first.Key) {
			t.Fatalf("conversation %d is apart", conversation)
		}
	}
}

// None and all of the requests, and both shares have others.
func TestShareBounds(t *testing.T) {
	none, all := newShare(Settings{ShareLength: 256}, splitSalt), newShare(Settings{Share: 1, ShareLength: 256}, splitSalt)
	shadow, split := newShare(Settings{Share: 0.5, ShareLength: 256}, shadowSalt), newShare(Settings{Share: 0.5, ShareLength: 256}, splitSalt)
	both := 0
	for key := range uint64(4000) {
		if none.hasHash(key) || !all.hasHash(key) || none.has(nil, key) || !all.has(nil, key) {
			t.Fatal("a bound does not hold")
		}
		if shadow.hasHash(mixed(key)) && split.hasHash(mixed(key)) {
			both++
		}
	}
	if both < 800 || both > 1200 {
		t.Errorf("%d of 4000 are in both halves, want a quarter", both)
	}
	if !all.hasHash(math.MaxUint64) {
		t.Error("not all")
	}
}
