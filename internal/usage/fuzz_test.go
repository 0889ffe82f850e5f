package usage

import (
	"bytes"
	"testing"
)

// whole reads an answer that is there as a whole, line by line.
func whole(f Format, answer []byte) (result Result, content bool) {
	if f == JSON {
		m, ok := decode(answer)
		switch {
		case len(answer) > MaxBody:
			return Result{Outcome: TooLarge}, false
		case !ok:
			return Result{Outcome: Malformed}, false
		}
		return m.usage(), false
	}
	long := false
	for _, line := range bytes.Split(answer, []byte("\n")) {
		if len(line) > MaxLine {
			long = true
			continue
		}
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if !is || content && !bytes.Contains(data, []byte(`"usage"`)) && !bytes.Contains(data, []byte(`"timings"`)) {
			continue
		}
		m, ok := decode(data)
		if !ok {
			continue
		}
		content = content || m.hasContent()
		if u := m.usage(); u.Outcome == Read || u.Outcome == NoCachedTokens && result.Outcome != Read {
			result = u
		}
	}
	if long && result.Outcome == NoUsage {
		result.Outcome = TooLarge
	}
	return result, content
}

// FuzzReader cuts any answer anywhere: what is read is the same as of the whole.
func FuzzReader(f *testing.F) {
	for _, tc := range answers {
		if len(tc.answer) < 4096 {
			f.Add([]byte(tc.answer), []byte{1, 3, 200}, tc.format == Events)
		}
	}
	f.Fuzz(func(t *testing.T, answer, cuts []byte, isEvents bool) {
		format := JSON
		if isEvents {
			format = Events
		}
		r := NewReader(format)
		for i, rest := 0, answer; len(rest) > 0; i++ {
			n := len(rest)
			if i < len(cuts) {
				n = min(n, int(cuts[i]))
			}
			r.Write(rest[:n])
			rest = rest[n:]
		}
		got := r.Finish()
		want, content := whole(format, answer)
		if got != want || r.Content() != content {
			t.Errorf("%+v, content %v, want %+v, %v", got, r.Content(), want, content)
		}
		if got.CachedTokens < 0 || got.CachedTokens > got.PromptTokens {
			t.Errorf("%+v", got)
		}
	})
}
