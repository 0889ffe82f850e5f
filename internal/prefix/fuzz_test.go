package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzScanner proves on arbitrary bytes that chunks never matter, whether the
// body is complete or cut off, and on JSON objects that the twin agrees.
func FuzzScanner(f *testing.F) {
	for _, c := range readCases(f) {
		api, _ := Classify(c.path)
		f.Add(uint8(api), uint16(100), uint64(1), c.body)
	}
	f.Fuzz(func(t *testing.T, a uint8, n uint16, seed uint64, body []byte) {
		api := API(a) % numAPIs
		rnd := rand.New(rand.NewPCG(seed, 0))
		chunkings := [][][]byte{{body}, byteByByte(body), randomChunks(rnd, body)}
		for _, complete := range []bool{true, false} {
			want := describe(api, int(n), complete, chunkings[0])
			for _, chunks := range chunkings[1:] {
				if got := describe(api, int(n), complete, chunks); got != want {
					t.Fatalf("%v complete=%v: %d chunks give\n%s, one gives\n%s", api, complete, len(chunks), got, want)
				}
			}
		}
		if _, err := parseTree(body); err == nil && n > 0 {
			compare(t, api, "", body, int(n), chunkings[0])
		}
	})
}

// describe returns all there is to know about a result.
func describe(api API, n int, complete bool, chunks [][]byte) string {
	var s Scanner
	s.Reset(Head{Path: paths[api]}, Options{PrefixLength: n})
	for _, chunk := range chunks {
		s.Feed(chunk)
	}
	r := s.Finish(complete)
	if r.Chars > s.opts.PrefixLength || len(r.Levels) != r.Chars/LevelChars {
		panic(fmt.Sprintf("N=%d: %+v", n, r))
	}
	r.Levels = slices.Clone(r.Levels)
	return fmt.Sprintf("%+v %q", r, s.Text())
}

// FuzzGzip proves that a body that claims to be gzip never breaks anything, and
// that chunks do not matter to it either.
func FuzzGzip(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add(compress(f, c.body), uint64(1), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64, complete bool) {
		read := func(chunks ...[]byte) string {
			var s Scanner
			s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}, Options{PrefixLength: 300, MaxInflate: 1 << 16})
			for _, chunk := range chunks {
				s.Feed(chunk)
			}
			r := s.Finish(complete)
			r.Levels = slices.Clone(r.Levels)
			return fmt.Sprintf("%+v %q", r, s.Text())
		}
		want := read(body)
		if got := read(randomChunks(rand.New(rand.NewPCG(seed, 0)), body)...); got != want {
			t.Fatalf("in chunks\n%s, in one\n%s", got, want)
		}
	})
}
