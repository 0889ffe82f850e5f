package fleet

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c\x00]{0,2}`)
		a, b := rapid.SliceOf(word).Draw(t, "a"), rapid.SliceOf(word).Draw(t, "b")
		both := NewNames(a...).And(NewNames(b...))
		if shuffled := NewNames(rapid.Permutation(append(slices.Clone(a), b...)).Draw(t, "both")...); both != shuffled {
			t.Fatalf("%q, in another order %q", both, shuffled)
		}
		if !slices.IsSorted(both.All()) {
			t.Fatalf("not sorted: %q", both.All())
		}
		for _, name := range append(append(a, b...), "never", "") {
			want := name != "" && name != "never" && !slices.Contains([]byte(name), 0)
			if both.Has(name) != want || slices.Contains(both.All(), name) != want {
				t.Fatalf("%q has %q: %t, want %t", both, name, both.Has(name), want)
			}
		}
	})
}
