package fleet

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct{ in, want, err string }{
		{in: "10.0.0.1:8000", want: "10.0.0.1:8000"},
		{in: "[fd00::10]:8000", want: "[fd00::10]:8000"},
		{in: "[0:0:0:0:0:0:0:1]:80", want: "[::1]:80"},
		{in: "[::ffff:127.0.0.1]:80", want: "127.0.0.1:80"},
		{in: "fd00::10:8000", err: "fd00::10:8000"},
		{in: "gpu-1.example:8000", err: "gpu-1.example:8000"},
		{in: "http://10.0.0.1:80/", err: "want ip:port"},
		{in: "10.0.0.1", err: "want ip:port"},
		{in: "10.0.0.1:0", err: "port 0"},
		{in: "10.0.0.1:65536", err: "65536"},
		{in: "[fe80::1%eth0]:80", err: "interface zone"},
		{in: "0.0.0.0:80", err: "not the address of one host"},
		{in: "224.0.0.1:80", err: "not the address of one host"},
		{in: "", err: `""`},
	} {
		got, err := ParseAddress(tc.in)
		if tc.err == "" && (err != nil || got != tc.want) {
			t.Errorf("ParseAddress(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
		if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("ParseAddress(%q) error = %v; want it to name %q", tc.in, err, tc.err)
		}
	}
}

func TestParseState(t *testing.T) {
	for _, s := range []State{Healthy, Unhealthy, Draining} {
		if got, err := ParseState(s.String()); err != nil || got != s {
			t.Errorf("ParseState(%q) = %v, %v", s, got, err)
		}
	}
	if got, err := ParseState(""); err != nil || got != Healthy {
		t.Errorf("empty state = %v, %v; want healthy", got, err)
	}
	if _, err := ParseState("Healthy"); err == nil || !strings.Contains(err.Error(), `"Healthy"`) {
		t.Errorf("unknown state error = %v; want the value named", err)
	}
}

func TestNewSetKeepsTheFirstOfADuplicate(t *testing.T) {
	set, dup := NewSet([]Endpoint{
		{Address: "10.0.0.2:80", Weight: 1},
		{Address: "10.0.0.1:80", Weight: 7},
		{Address: "10.0.0.1:80", Weight: 9},
	})
	if set.Len() != 2 || set.At(0).Weight != 7 {
		t.Errorf("set = %+v; want two endpoints, the first with weight 7", set.Endpoints())
	}
	if len(dup) != 1 || dup[0] != "10.0.0.1:80" {
		t.Errorf("duplicates = %v", dup)
	}
	if i, ok := set.Index("10.0.0.2:80"); !ok || i != 1 {
		t.Errorf("Index = %d, %v", i, ok)
	}
	if _, ok := set.Index("10.0.0.3:80"); ok {
		t.Error("Index found an address that is no member")
	}
}

// The zero Set and a set of no endpoints are one membership.
func TestEmptySetsAreEqual(t *testing.T) {
	empty, _ := NewSet([]Endpoint{})
	if !empty.Equal(Set{}) || empty.Version() != (Set{}).Version() {
		t.Errorf("versions %x and %x of two empty sets", empty.Version(), Set{}.Version())
	}
}

// The order in which a source lists its members never matters, and any change
// of content changes the version.
func TestVersionIsAFunctionOfTheContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoints := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Endpoint {
			return Endpoint{
				Address: rapid.StringMatching(`10\.[0-9]\.[0-9]\.[0-9]:80`).Draw(t, "address"),
				Weight:  rapid.Uint32Range(MinWeight, 3).Draw(t, "weight"),
				State:   State(rapid.IntRange(0, 2).Draw(t, "state")),
				Zone:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"),

				Priority: rapid.Uint8Range(0, 1).Draw(t, "priority"),
				Instance: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "instance"),
				Adapters: rapid.SampledFrom([]Names{"", NewNames("a"), NewNames("a", "b")}).Draw(t, "adapters"),
			}
		}), 1, 12, func(e Endpoint) string { return e.Address }).Draw(t, "endpoints")
		a, _ := NewSet(endpoints)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
		b, _ := NewSet(endpoints)
		if !a.Equal(b) || a.Version() != b.Version() {
			t.Fatalf("order changed the set: %v, %v", a, b)
		}
		endpoints[0].Weight++
		c, _ := NewSet(endpoints)
		if a.Equal(c) || a.Version() == c.Version() {
			t.Fatal("a changed weight left the set equal")
		}
	})
}
