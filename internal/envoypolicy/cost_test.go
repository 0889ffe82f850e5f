package envoypolicy

import (
	"fmt"
	"strings"
	"testing"
)

func TestNoAllocation(t *testing.T) {
	r := testResolver(t)
	for name, in := range map[string]Input{
		"nothing":           {},
		"foreign text":      {RouteText: strings.Repeat("x", 1<<20), ClusterText: "y"},
		"name":              {InitialMetadata: "long"},
		"JSON":              readSample(t, "initial-json"),
		"typed":             readSample(t, "cluster"),
		"text":              readSample(t, "route-types"),
		"cached fault":      {InitialMetadata: "nobody"},
		"fault, then text":  {InitialMetadata: "nobody", RouteText: readSample(t, "route").RouteText},
		"too-nested, valid": {RouteText: "warmpath " + strings.Repeat("a {", 100)},
	} {
		r.Resolve(in)
		if n := testing.AllocsPerRun(100, func() { r.Resolve(in) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

// Whatever arrives, the caches stay within their bounds.
func TestCachesAreBounded(t *testing.T) {
	r := testResolver(t)
	for i := range 3 * cacheEntries {
		r.Resolve(Input{InitialMetadata: fmt.Sprint("x", i), ClusterText: fmt.Sprint("warmpath:", i), RouteText: fmt.Sprint("warmpath:", i)})
	}
	long := `{"prefix_length":2048` + strings.Repeat(" ", maxCachedText) + `}`
	r.Resolve(Input{RouteText: "warmpath#" + long})
	if a, b, c := r.initial.Len(), r.cluster.Len(), r.route.Len(); a != cacheEntries || b != cacheEntries || c != cacheEntries {
		t.Errorf("%d, %d and %d outcomes are kept, want %d each", a, b, c, cacheEntries)
	}
	for _, k := range r.route.Keys() {
		if len(k) > maxCachedText {
			t.Errorf("a text of %d bytes is kept, want at most %d", len(k), maxCachedText)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	r := testResolver(b)
	for _, name := range []string{"plain", "initial-json", "cluster", "route"} {
		in := readSample(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Resolve(in)
			}
		})
	}
	in := readSample(b, "route-types")
	b.Run("text, not cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.readText(FromRouteMetadata, in.RouteText)
		}
	})
	b.Run("cached, parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				r.Resolve(in)
			}
		})
	})
}
