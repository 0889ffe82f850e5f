package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/bench/load"
)

// texts are the messages of a request.
func texts(t *testing.T, r load.Request) (prefix, question string) {
	t.Helper()
	var body struct {
		Messages  []load.Message
		Stream    bool
		MaxTokens int            `json:"max_tokens"`
		Options   map[string]any `json:"stream_options"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Messages) != 2 || !body.Stream || body.MaxTokens == 0 || body.Options["include_usage"] != true {
		t.Fatalf("request %.200s", r.Body)
	}
	return body.Messages[0].Content, body.Messages[1].Content
}

// Each prefix has its length and its number of uses, is the same each time and nobody
// else's.
func TestWorkload(t *testing.T) {
	for _, s := range []scale{full(), brief()} {
		w, err := s.workload(1)
		if err != nil {
			t.Fatal(err)
		}
		uses, prefixes := make(map[int]int), make(map[int]string)
		for _, r := range w.requests {
			prefix, question := texts(t, r)
			if len(prefix) != w.lengths[r.Prefix] || len(question) != questionChars {
				t.Errorf("prefix %d has %d characters, its question %d", r.Prefix, len(prefix), len(question))
			}
			if before := prefixes[r.Prefix]; uses[r.Prefix] > 0 && before != prefix {
				t.Errorf("prefix %d is another with use %d", r.Prefix, uses[r.Prefix])
			}
			uses[r.Prefix]++
			prefixes[r.Prefix] = prefix
		}
		for p := range s.prefixes {
			if uses[p] != s.uses {
				t.Errorf("prefix %d has %d uses", p, uses[p])
			}
		}
		if slices.Min(w.lengths) != s.shortest || slices.Max(w.lengths) != s.longest || !slices.IsSorted(w.lengths) || len(w.lengths) != s.prefixes {
			t.Errorf("lengths %v", w.lengths)
		}
		if len(w.bursts) != len(thresholds) {
			t.Fatalf("%d bursts", len(w.bursts))
		}
		for i, b := range w.bursts {
			first, _ := texts(t, b.first)
			if len(b.rest) != s.burst || len(first) != s.longest || b.threshold != thresholds[i] {
				t.Errorf("burst %d: threshold %d, %d requests, a prefix of %d characters", i, b.threshold, len(b.rest), len(first))
			}
			for _, r := range b.rest {
				if prefix, _ := texts(t, r); prefix != first {
					t.Errorf("burst %d has two prefixes", i)
				}
			}
			for p, known := range prefixes {
				if first[:s.shortest] == known[:s.shortest] {
					t.Errorf("burst %d has prefix %d", i, p)
				}
			}
		}
	}
}

// Another seed is another order, the same one the same.
func TestSeed(t *testing.T) {
	order := func(seed uint64) (prefixes []int) {
		w, err := full().workload(seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range w.requests {
			prefixes = append(prefixes, r.Prefix)
		}
		return prefixes
	}
	if !slices.Equal(order(1), order(1)) || slices.Equal(order(1), order(2)) {
		t.Error("the order does not follow the seed")
	}
}
