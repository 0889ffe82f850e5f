package prefix

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestSkipAgreesWithBytes: skipping in blocks ends where a loop over the bytes
// does, whatever stands there, in any chunks.
func TestSkipAgreesWithBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	alphabets := []string{`"\{}[]a`, `{}[],: 1`, `"{}[]abcdefghijklmnopqrstuvwxyz|Yy;=_` + "\x7f\xdb\xdd\xa2", `"\ab`, `[]`}
	for range 20000 {
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		body := []byte{"[{"[rnd.IntN(2)]}
		for range rnd.IntN(400) {
			body = append(body, alphabet[rnd.IntN(len(alphabet))])
		}
		wantEnd, wantClosed := skipBytes(body)
		var s Scanner
		s.beginSkip(false)
		end, closed := 0, false
		for _, chunk := range randomChunks(rnd, body) {
			var n int
			n, closed = s.skipTo(chunk)
			if end += n; closed {
				break
			}
		}
		if end != wantEnd || closed != wantClosed {
			t.Fatalf("%q: %d %v, want %d %v", body, end, closed, wantEnd, wantClosed)
		}
	}
}

func skipBytes(p []byte) (end int, closed bool) {
	depth, inString := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(p), false
}

// TestDeepNesting: a million brackets at any place are cheap, and what follows
// them still counts.
func TestDeepNesting(t *testing.T) {
	const deep = 1_000_000
	for _, nest := range []struct{ open, shut string }{{"[", "]"}, {`{"a":`, "}"}, {`{"content":[`, "]}"}} {
		n := deep / len(nest.open)
		value := strings.Repeat(nest.open, n) + "1" + strings.Repeat(nest.shut, n)
		for _, body := range []string{
			`{"x":` + value + `,"messages":[{"content":"hello"}],"model":"m"}`,
			`{"messages":[{"content":"hello"},` + value + `],"model":"m"}`,
			`{"messages":[{"content":"hello","content2":` + value + `}],"model":"m"}`,
			`{"messages":[{"content":["hello",` + value + `]}],"model":"m"}`,
			`{"messages":[{"content":[{"text":"hello","x":` + value + `}]}],"model":` + value + `,"model":"m"}`,
		} {
			start := time.Now()
			r, text := readWhole(Head{Path: "/v1/chat/completions"}, 1024, []byte(body))
			if !strings.HasPrefix(text, "hello") || r.Model != "m" {
				t.Errorf("%.60s...: %q, model %q", body, text, r.Model)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%.60s...: took %v", body, took)
			}
		}
	}
}
