package prefix

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func compress(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

const chatBody = `{"messages":[{"role":"user","content":"Which chain fits frame code KX-204?"}],"model":"m"}`

func TestGzip(t *testing.T) {
	whole := compress(t, []byte(chatBody))
	badSum := bytes.Clone(whole)
	badSum[len(badSum)-5] ^= 1
	tests := []struct {
		name, encoding string
		body           []byte
		partial        bool
		kind           Kind
		notes          Notes
		text           string
	}{
		{"plain", "", []byte(chatBody), false, Text, 0, "Which"},
		{"identity", "Identity", []byte(chatBody), false, Text, 0, "Which"},
		{"whole", "gzip", whole, false, Text, 0, "Which"},
		{"other spelling", " X-GZip , identity", whole, false, Text, 0, "Which"},
		{"members", "gzip", compress(t, []byte(chatBody[:30]), []byte(chatBody[30:])), false, Text, 0, "Which"},
		{"empty", "gzip", nil, false, None, 0, ""},
		{"not JSON", "gzip", compress(t, []byte("hello")), false, Raw, NoteRawFallback, "hello"},
		{"truncated", "gzip", whole[:len(whole)-9], false, Raw, NoteGzipBad, "\x1f\x8b"},
		{"cut on the way", "gzip", whole[:len(whole)-9], true, Text, NoteCut, "Which"},
		{"wrong checksum", "gzip", badSum, false, Raw, NoteGzipBad, "\x1f\x8b"},
		{"no gzip", "gzip", []byte(chatBody), false, Raw, NoteGzipBad, `{"messages"`},
		{"garbage behind", "gzip", append(bytes.Clone(whole), "garbage!!!"...), false, Raw, NoteGzipBad, "\x1f\x8b"},
		{"other encoding", "br", []byte("\x0b\x02"), false, Raw, NoteEncoding, "\x0b\x02"},
		{"twice", "gzip, gzip", whole, false, Raw, NoteEncoding, "\x1f\x8b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s Scanner
			s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: test.encoding}, Options{})
			s.Feed(test.body)
			r := s.Finish(!test.partial)
			if r.Kind != test.kind || r.Notes != test.notes || !strings.HasPrefix(s.Text(), test.text) {
				t.Errorf("%v, notes %b, %q; want %v, %b, %q", r.Kind, r.Notes, s.Text(), test.kind, test.notes, test.text)
			}
		})
	}
}

// TestGzipSameKey: what was compressed has the key of what it decompresses to,
// also on the native path.
func TestGzipSameKey(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/invocations"} {
		want, _ := readWhole(Head{Path: path}, 1024, []byte(chatBody))
		got, _ := readWhole(Head{Path: path, ContentEncoding: "gzip"}, 1024, compress(t, []byte(chatBody)))
		if got.Key != want.Key {
			t.Errorf("%s: key %x compressed, %x plain", path, got.Key, want.Key)
		}
	}
}

// TestGzipBomb: 32 MiB of spaces in 32 KiB stop at the bound, and what comes
// before counts as the text so far.
func TestGzipBomb(t *testing.T) {
	bomb := compress(t, []byte(chatBody[:len(chatBody)-1]), bytes.Repeat([]byte(" "), 32<<20))
	var s Scanner
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}, Options{MaxInflate: 1 << 20})
	s.Feed(bomb)
	r := s.Finish(true)
	runtime.ReadMemStats(&after)
	if r.Kind != Text || !r.Notes.Has(NoteInflateCut) || r.Model != "m" {
		t.Errorf("%+v, want text up to the bound", r)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
		t.Errorf("%d bytes allocated for a bomb of %d", used, len(bomb))
	}
}

// TestGzipRatio: what decompresses to more than 100 times as many bytes is cut,
// once it is large, and so is a compressed body that is itself too large.
func TestGzipRatio(t *testing.T) {
	head, tail := []byte(`{"messages":[{"content":"Which chain?"}],"x":"`), []byte(`","model":"m"}`)
	rnd, noise := rand.New(rand.NewPCG(5, 6)), make([]byte, 1<<19)
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[rnd.IntN(64)]
	}
	for _, test := range []struct {
		name   string
		filler []byte
		limit  int64
		model  string
		notes  Notes
	}{
		{"small", bytes.Repeat([]byte("a"), 60<<10), 0, "m", 0},
		{"dense", bytes.Repeat([]byte("a"), 1<<20), 0, "", NoteCut | NoteInflateCut},
		{"repeated", []byte(prose(1 << 20)), 0, "", NoteCut | NoteInflateCut},
		{"noise", noise, 0, "m", 0},
		{"large", noise, 1 << 20, "", NoteCut | NoteInflateCut},
	} {
		var s Scanner
		s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}, Options{MaxInflate: test.limit})
		body := compress(t, slices.Concat(head, test.filler, tail))
		s.Feed(body)
		if r := s.Finish(true); r.Kind != Text || r.Notes != test.notes || r.Model != test.model || s.Text() != "Which chain?" {
			t.Errorf("%s: %d bytes: %v, notes %b, model %q, %q; want notes %b, model %q", test.name, len(body), r.Kind, r.Notes, r.Model, s.Text(), test.notes, test.model)
		}
	}
}

// TestGzipRatioBound: of a bomb just as much is read as the ratio allows.
func TestGzipRatioBound(t *testing.T) {
	var s Scanner
	s.Reset(Head{Path: "/invocations", ContentEncoding: "gzip"}, Options{PrefixLength: 1 << 20})
	body := compress(t, bytes.Repeat([]byte("a"), 1<<20))
	s.Feed(body)
	if r, want := s.Finish(true), inflateSlack+maxRatio*len(body); r.Chars != want || maxRatio != 100 {
		t.Errorf("%d bytes were read of %d, want %d", r.Chars, len(body), want)
	}
}

// TestGzipEmptyMembers: compressed bytes are bounded too, when they stand for
// nothing.
func TestGzipEmptyMembers(t *testing.T) {
	var s Scanner
	s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}, Options{MaxInflate: 1000})
	empty := compress(t, nil)
	for range 10_000 {
		s.Feed(empty)
	}
	if r := s.Finish(true); !r.Notes.Has(NoteInflateCut|NoteCut) || cap(s.inflater.in) > 1<<17 {
		t.Errorf("notes %b, %d bytes held", r.Notes, cap(s.inflater.in))
	}
}

// TestGzipBound: a body of just the bound is whole, one byte more is cut.
func TestGzipBound(t *testing.T) {
	for extra, want := range []Notes{0, NoteInflateCut | NoteCut} {
		var s Scanner
		s.Reset(Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}, Options{MaxInflate: int64(len(chatBody))})
		s.Feed(compress(t, []byte(chatBody+strings.Repeat(" ", extra))))
		if r := s.Finish(true); r.Notes != want {
			t.Errorf("%d bytes over the bound: notes %b, want %b", extra, r.Notes, want)
		}
	}
}
