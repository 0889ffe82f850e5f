package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Chunks are what they promise: those that two prompts of blocks share are the
// whole chunks of the tokens that they share, whatever the size of the blocks.
func TestChunksOfBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 16, 48, 64, 100, 128, 512}).Draw(t, "block")
		a, b := drawBlocks(t, size, "a"), drawBlocks(t, size, "b")
		got := [2][]uint64{appendChunks(nil, 7, a), appendChunks(nil, 7, b)}
		tokens := [2][]string{tokensTwin(a), tokensTwin(b)}
		for i := range got {
			if len(got[i]) != len(tokens[i])/ChunkTokens {
				t.Fatalf("%d chunks of %d tokens", len(got[i]), len(tokens[i]))
			}
		}
		if got, want := common(got[0], got[1]), common(tokens[0], tokens[1])/ChunkTokens; got != want {
			t.Errorf("share %d chunks, want %d", got, want)
		}
	})
}

func drawBlocks(t *rapid.T, size int, label string) []piece {
	ids := rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 12).Draw(t, label)
	last := rapid.IntRange(1, size).Draw(t, label+" last")
	return blocks(nil, ids, size, max(0, len(ids)-1)*size+min(last, len(ids)*size))
}

// tokensTwin spells out each token of the pieces.
func tokensTwin(pieces []piece) (tokens []string) {
	for _, p := range pieces {
		for i := range p.tokens {
			tokens = append(tokens, fmt.Sprint(p.id, "/", i))
		}
	}
	return tokens
}

// common returns how many elements two lists share from the front.
func common[E comparable](a, b []E) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Prompts of text share the whole chunks of the characters that they share, as
// strings and as messages, and how JSON spells them does not matter.
func TestChunksOfText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMessages(t, "a"), drawMessages(t, "b")
		var texts [2][]rune
		var chunks [2][]uint64
		var c textChunker
		for i, messages := range [][]message{a, b} {
			var contents []string
			for _, m := range messages {
				contents = append(contents, m.Content)
			}
			text := strings.Join(contents, "\n")
			texts[i] = []rune(text)
			body, _ := json.Marshal(messages)
			got, chars, err := c.chunks(prompt{json: body}, "m")
			if err != nil || chars != len(texts[i]) || len(got) != chars/prefixLevel {
				t.Fatalf("%d levels of %d characters, %v; want %d characters", len(got), chars, err, len(texts[i]))
			}
			plain, _ := json.Marshal(text)
			if again, _, _ := c.chunks(prompt{json: plain}, "m"); !cmp.Equal(got, again) {
				t.Errorf("messages and their text differ")
			}
			if other, _, _ := c.chunks(prompt{json: body}, "other"); common(got, other) != 0 {
				t.Errorf("models share chunks")
			}
			chunks[i] = got
		}
		if got, want := common(chunks[0], chunks[1]), common(texts[0], texts[1])/prefixLevel; got != want {
			t.Errorf("share %d chunks, want %d", got, want)
		}
	})
}

const prefixLevel = CharsPerToken * ChunkTokens

// drawMessages returns messages of which two lists often share a beginning.
func drawMessages(t *rapid.T, label string) []message {
	words := []string{"wheel ", "Speiche ü ", "自転車 ", "\\\"\n", "🚲"}
	content := rapid.Custom(func(t *rapid.T) message {
		word := rapid.SampledFrom(words).Draw(t, "word")
		return message{Role: "user", Content: strings.Repeat(word, rapid.SampledFrom([]int{1, 60, 256}).Draw(t, "times"))}
	})
	return rapid.SliceOfN(content, 1, 6).Draw(t, label)
}

// The order of lines never matters where times are different.
func TestShuffledLines(t *testing.T) {
	for _, format := range Formats() {
		header, lines := linesOf(format, sample(t, format))
		read := func(lines []string) Trace {
			got, err := Read(strings.NewReader(header+strings.Join(lines, "")), format, Options{})
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			got.Name = ""
			return got
		}
		lines = distinct(format, lines)
		want := read(lines)
		rapid.Check(t, func(t *rapid.T) {
			if diff := cmp.Diff(want, read(rapid.Permutation(lines).Draw(t, "lines"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", format, diff)
			}
		})
	}
}

// linesOf returns the header and the lines (of CSV: records) of a file.
func linesOf(format string, data []byte) (header string, lines []string) {
	switch format {
	case "azure":
		lines = strings.SplitAfter(string(data), "\n")
	case "realhumaneval":
		// Records end where a line ends outside of quotes.
		var b strings.Builder
		quotes := 0
		for line := range strings.Lines(string(data)) {
			b.WriteString(line)
			if quotes += strings.Count(line, `"`); quotes%2 == 0 {
				lines = append(lines, b.String())
				b.Reset()
			}
		}
	default:
		return "", strings.SplitAfter(strings.TrimSpace(string(data))+"\n", "\n")
	}
	return lines[0], lines[1:]
}

// distinct gives lines of formats that have equal times in the sample others.
func distinct(format string, lines []string) []string {
	if format != "mooncake" {
		return lines
	}
	for i, line := range lines {
		before, after, ok := strings.Cut(line, ", ")
		if ok && strings.HasPrefix(before, `{"timestamp": `) {
			lines[i] = `{"timestamp": ` + strconv.Itoa(3000*i+1) + ", " + after
		}
	}
	return lines
}

// What Python writes is read back.
func TestPythonTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("'\"\\\n\t\r\x00ü🚲n"))))
		messages := rapid.SliceOf(rapid.Custom(func(t *rapid.T) message {
			return message{Role: text.Draw(t, "role"), Content: text.Draw(t, "content")}
		})).Draw(t, "messages")
		got, err := pythonMessages(repr(messages))
		if err != nil || len(got) != len(messages) {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		for i := range got {
			if got[i] != messages[i] {
				t.Errorf("got %q, want %q", got[i], messages[i])
			}
		}
	})
}

// repr writes messages as Python does, but for which characters it escapes.
func repr(messages []message) string {
	str := func(s string) string {
		quote := `'`
		if strings.Contains(s, `'`) && !strings.Contains(s, `"`) {
			quote = `"`
		}
		s = strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x00", `\x00`, "ü", `\xfc`).Replace(s)
		return quote + s + quote
	}
	var items []string
	for _, m := range messages {
		items = append(items, "{'role': "+str(m.Role)+", 'content': "+str(m.Content)+"}")
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// Sessions are laid out alike whatever stands first, and within them nothing moves.
func TestLayout(t *testing.T) {
	requests := []Request{
		{Session: "10", Arrival: 5}, {Session: "9", Arrival: 7}, {Session: "10", Arrival: 3}, {Session: "9", Arrival: 8},
	}
	for _, c := range []struct {
		layout layout
		want   []int64
	}{
		{layout{gap: 100}, []int64{105, 7, 103, 8}},
		{layout{gap: 100, fromFirst: true}, []int64{102, 0, 100, 1}},
	} {
		for range 10 {
			shuffled := bytes.Clone([]byte{0, 1, 2, 3})
			rand.Shuffle(4, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			var moved []Request
			for _, i := range shuffled {
				moved = append(moved, requests[i])
			}
			c.layout.apply(moved)
			for k, i := range shuffled {
				if int64(moved[k].Arrival) != c.want[i] {
					t.Errorf("%+v: %+v moved to %d, want %d", c.layout, requests[i], moved[k].Arrival, c.want[i])
				}
			}
		}
	}
}
