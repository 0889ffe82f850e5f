package load

import (
	"reflect"
	"strings"
	"testing"
)

var small = Shared{Prefixes: 5, Uses: 8, PrefixChars: 300, SuffixChars: 40, Seed: 1}

func TestSharedShape(t *testing.T) {
	prompts, err := small.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	uses := map[int]int{}
	system := map[int]string{}
	users := map[string]bool{}
	changes := 0
	for i, p := range prompts {
		prefix, question := p.Messages[0].Content, p.Messages[1].Content
		if len(p.Messages) != 2 || len(prefix) != small.PrefixChars || len(question) != small.SuffixChars {
			t.Errorf("prompt %d: %d + %d characters", i, len(prefix), len(question))
		}
		if s, ok := system[p.Prefix]; ok && s != prefix {
			t.Errorf("prompt %d: prefix %d has two texts", i, p.Prefix)
		}
		if i > 0 && p.Prefix != prompts[i-1].Prefix {
			changes++
		}
		system[p.Prefix] = prefix
		users[question] = true
		uses[p.Prefix]++
	}
	for p := range small.Prefixes {
		if uses[p] != small.Uses {
			t.Errorf("prefix %d used %d times, want %d", p, uses[p], small.Uses)
		}
		for other := range p {
			if strings.HasPrefix(system[p], system[other][:minChars]) {
				t.Errorf("prefixes %d and %d begin alike", p, other)
			}
		}
	}
	if len(users) != len(prompts) {
		t.Errorf("%d different user texts for %d prompts", len(users), len(prompts))
	}
	if changes < len(prompts)/2 {
		t.Errorf("prefix changes %d times in %d prompts: not interleaved", changes, len(prompts))
	}
}

func TestSharedDependsOnTheSeedAlone(t *testing.T) {
	a, _ := small.Prompts()
	b, _ := small.Prompts()
	if !reflect.DeepEqual(a, b) {
		t.Error("equal seeds, different workloads")
	}
	other := small
	other.Seed = 2
	c, _ := other.Prompts()
	if reflect.DeepEqual(a, c) {
		t.Error("different seeds, equal workloads")
	}
}

func TestSharedSkew(t *testing.T) {
	s := Shared{Prefixes: 10, Uses: 1000, PrefixChars: 16, SuffixChars: 16, Skew: 1, Seed: 3}
	prompts, err := s.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	uses := make([]float64, s.Prefixes)
	for _, p := range prompts {
		uses[p.Prefix]++
	}
	// The harmonic number H(10) is 2.929: rank 1 gets 34.1 %, rank 10 3.41 %.
	for rank, want := range map[int]float64{0: 3414, 1: 1707, 9: 341} {
		if uses[rank] < want*0.9 || uses[rank] > want*1.1 {
			t.Errorf("rank %d: %v uses, want about %v", rank+1, uses[rank], want)
		}
	}
}

func TestSharedRejects(t *testing.T) {
	for name, change := range map[string]func(*Shared){
		"Prefixes":    func(s *Shared) { s.Prefixes = 0 },
		"Uses":        func(s *Shared) { s.Uses = -1 },
		"PrefixChars": func(s *Shared) { s.PrefixChars = minChars - 1 },
		"SuffixChars": func(s *Shared) { s.SuffixChars = 0 },
		"skew":        func(s *Shared) { s.Skew = -1 },
	} {
		s := small
		change(&s)
		if _, err := s.Prompts(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: error %v", name, err)
		}
	}
}

// Each request of a conversation begins with the one before it.
func TestConversations(t *testing.T) {
	c := Conversations{Count: 6, Turns: 4, SystemChars: 50, UserChars: 20, AnswerChars: 30, Seed: 1}
	prompts, err := c.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	if len(prompts) != 24 {
		t.Fatalf("%d prompts, want 24", len(prompts))
	}
	last := make([][]Message, c.Count)
	for i, p := range prompts {
		before := last[p.Prefix]
		switch {
		case before == nil && (len(p.Messages) != 2 || p.Messages[0] != prompts[0].Messages[0]):
			t.Errorf("prompt %d: a conversation begins with %d messages, or a system prompt of its own", i, len(p.Messages))
		case before != nil && (len(p.Messages) != len(before)+2 || !reflect.DeepEqual(p.Messages[:len(before)], before)):
			t.Errorf("prompt %d does not go on where its conversation was", i)
		}
		last[p.Prefix] = p.Messages
	}
	for n, messages := range last {
		if len(messages) != 2*c.Turns {
			t.Errorf("conversation %d has %d messages at its end, want %d", n, len(messages), 2*c.Turns)
		}
	}
	if _, err := (Conversations{Count: 1}).Prompts(); err == nil || !strings.Contains(err.Error(), "Turns 0") {
		t.Errorf("no turns: error %v", err)
	}
}
