package trace

import (
	"slices"
	"strings"
	"testing"
)

// A line that says its block is read by it, and its ids may be those of a
// beginning; others in the same trace have the option's or Mooncake's.
func TestRecordedLines(t *testing.T) {
	const data = `{"timestamp": 0, "input_length": 1000, "output_length": 1, "hash_ids": [1, 2], "block_size": 64, "stands_for": 7, "salt_id": "a"}
{"timestamp": 1, "input_length": 130, "output_length": 1, "hash_ids": [1, 2, 3], "block_size": 64, "salt_id": "b"}
{"timestamp": 2, "input_length": 512, "output_length": 1, "hash_ids": [1]}
`
	got, err := Read(strings.NewReader(data), "mooncake", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := got.Requests
	if len(r[0].Chunks) != 2 || !slices.Equal(r[0].Chunks, r[1].Chunks) || len(r[2].Chunks) != 8 || r[0].Input != 1000 {
		t.Errorf("%+v", r)
	}
	if got.SampleRatio != 3.0/9 || got.BlockTokens != 512 {
		t.Errorf("ratio %v, block of %d", got.SampleRatio, got.BlockTokens)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "different salts") {
		t.Errorf("notes %q", got.Notes)
	}
	if _, err := Read(strings.NewReader(data), "mooncake", Options{BlockTokens: 16}); err == nil || !strings.Contains(err.Error(), "block_size 64: the option says 16") {
		t.Errorf("%v", err)
	}
}

// Who asks for them is given the texts that the router would see.
func TestPromptsAreHandedOut(t *testing.T) {
	var texts []string
	see := Options{Prompt: func(text string) { texts = append(texts, text) }}
	if _, err := Read(strings.NewReader(`{"timestamp": 1, "input": [{"role": "user", "content": "a"}, {"role": "user", "content": "\u0062"}]}`+"\n"+
		`{"timestamp": 2, "input": ""}`), "text", see); err != nil {
		t.Fatal(err)
	}
	if len(texts) != 1 || !strings.Contains(texts[0], "a") || !strings.Contains(texts[0], "b") {
		t.Errorf("%q", texts)
	}
}
