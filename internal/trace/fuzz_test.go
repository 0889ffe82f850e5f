package trace

import (
	"bytes"
	"testing"
)

// Each parser stands arbitrary bytes: it refuses them, or makes a trace that
// keeps what Request and Trace promise.
func FuzzAzure(f *testing.F)         { fuzz(f, "azure") }
func FuzzCopilot(f *testing.F)       { fuzz(f, "copilot") }
func FuzzMiniSWE(f *testing.F)       { fuzz(f, "miniswe") }
func FuzzMooncake(f *testing.F)      { fuzz(f, "mooncake") }
func FuzzRAGPulse(f *testing.F)      { fuzz(f, "ragpulse") }
func FuzzRealHumanEval(f *testing.F) { fuzz(f, "realhumaneval") }
func FuzzText(f *testing.F)          { fuzz(f, "text") }
func FuzzWeka(f *testing.F)          { fuzz(f, "weka") }

func fuzz(f *testing.F, format string) {
	data := sample(f, format)
	f.Add(data)
	f.Add(zipped(data))
	for line := range bytes.Lines(data) {
		if len(line) < 8<<10 {
			f.Add(line)
		}
	}
	limits := Limits{Bytes: 1 << 20, LineBytes: 64 << 10, Requests: 100, Chunks: 10_000}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(bytes.NewReader(data), format, Options{Limits: limits})
		if err != nil {
			return
		}
		checkPromises(t, got, limits)
		if s := got.Stats(); s.Ideal() < 0 || s.Ideal() > 1 {
			t.Errorf("ideal %v", s.Ideal())
		}
	})
}

func checkPromises(t *testing.T, got Trace, limits Limits) {
	t.Helper()
	chunks := 0
	for i, r := range got.Requests {
		chunks += len(r.Chunks)
		switch {
		case i == 0 && r.Arrival != 0, i > 0 && r.Arrival < got.Requests[i-1].Arrival:
			t.Errorf("request %d arrives at %v", i, r.Arrival)
		case r.Input < 0 || r.Input > MaxTokens || r.Output < 0 || r.Output > MaxTokens:
			t.Errorf("request %d has lengths %d and %d", i, r.Input, r.Output)
		case len(r.Chunks)*ChunkTokens > r.Input:
			t.Errorf("request %d has %d chunks in %d tokens", i, len(r.Chunks), r.Input)
		case len(r.Session) > maxName || len(r.Model) > maxName || len(r.Tenant) > maxName:
			t.Errorf("request %d has a long name", i)
		}
	}
	if len(got.Requests) == 0 || len(got.Requests) > limits.Requests || chunks > limits.Chunks {
		t.Errorf("%d requests and %d chunks with the limits %+v", len(got.Requests), chunks, limits)
	}
}

func FuzzPython(f *testing.F) {
	f.Add(`[{'role': 'user', 'content': "it's\n\x1b\u2028\U0001f6b2"}, {"content": 'a', 'role': 'b',},]`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, literal string) {
		messages, err := pythonMessages(literal)
		if err != nil {
			return
		}
		again, err := pythonMessages(repr(messages))
		if err != nil || len(again) != len(messages) {
			t.Fatalf("%d messages, written and read again: %d, %v", len(messages), len(again), err)
		}
		for i := range again {
			if again[i] != messages[i] {
				t.Errorf("message %d: %q, want %q", i, again[i], messages[i])
			}
		}
	})
}
