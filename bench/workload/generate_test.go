package workload

import (
	"reflect"
	"strings"
	"testing"
)

var small = Shared{Prefixes: 5, Uses: 8, PrefixChars: 300, SuffixChars: 40, OutputTokens: 3, Seed: 1}

func TestSharedPrefixShape(t *testing.T) {
	requests, err := SharedPrefix(small)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[int]int{}
	system := map[int]string{}
	users := map[string]bool{}
	changes := 0
	for i, q := range requests {
		if len(q.System) != small.PrefixChars || len(q.User) != small.SuffixChars || q.OutputTokens != 3 {
			t.Errorf("request %d: %d + %d characters, %d tokens", i, len(q.System), len(q.User), q.OutputTokens)
		}
		if s, ok := system[q.Prefix]; ok && s != q.System {
			t.Errorf("request %d: prefix %d has two texts", i, q.Prefix)
		}
		if i > 0 && q.Prefix != requests[i-1].Prefix {
			changes++
		}
		system[q.Prefix] = q.System
		users[q.User] = true
		uses[q.Prefix]++
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
	if len(users) != len(requests) {
		t.Errorf("%d different user texts for %d requests", len(users), len(requests))
	}
	if changes < len(requests)/2 {
		t.Errorf("prefix changes %d times in %d requests: not interleaved", changes, len(requests))
	}
}

func TestSharedPrefixDependsOnTheSeedAlone(t *testing.T) {
	a, _ := SharedPrefix(small)
	b, _ := SharedPrefix(small)
	if !reflect.DeepEqual(a, b) {
		t.Error("equal seeds, different workloads")
	}
	other := small
	other.Seed = 2
	c, _ := SharedPrefix(other)
	if reflect.DeepEqual(a, c) {
		t.Error("different seeds, equal workloads")
	}
}

func TestSharedPrefixSkew(t *testing.T) {
	s := Shared{Prefixes: 10, Uses: 1000, PrefixChars: 16, SuffixChars: 16, OutputTokens: 1, Skew: 1, Seed: 3}
	requests, err := SharedPrefix(s)
	if err != nil {
		t.Fatal(err)
	}
	uses := make([]float64, s.Prefixes)
	for _, q := range requests {
		uses[q.Prefix]++
	}
	// The harmonic number H(10) is 2.929: rank 1 gets 34.1 %, rank 10 3.41 %.
	for rank, want := range map[int]float64{0: 3414, 1: 1707, 9: 341} {
		if uses[rank] < want*0.9 || uses[rank] > want*1.1 {
			t.Errorf("rank %d: %v uses, want about %v", rank+1, uses[rank], want)
		}
	}
}

func TestSharedPrefixRejects(t *testing.T) {
	for name, change := range map[string]func(*Shared){
		"Prefixes":     func(s *Shared) { s.Prefixes = 0 },
		"Uses":         func(s *Shared) { s.Uses = -1 },
		"PrefixChars":  func(s *Shared) { s.PrefixChars = minChars - 1 },
		"SuffixChars":  func(s *Shared) { s.SuffixChars = 0 },
		"OutputTokens": func(s *Shared) { s.OutputTokens = 0 },
		"skew":         func(s *Shared) { s.Skew = -1 },
	} {
		s := small
		change(&s)
		if _, err := SharedPrefix(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: error %v", name, err)
		}
	}
}
