package main

import "testing"

// A surplus counts when every sample of a round has it, and once.
func TestAuditor(t *testing.T) {
	a := auditor{least: make([]int64, 0, 3)}
	for i, step := range []struct{ surplus, leaked int64 }{
		{5, 0},
		{1, 0},
		{0, 0}, // noise
		{-2, 0},
		{4, 0},
		{9, 0},
		{2, 0},
		{3, 0},
		{2, 2}, // two are left
		{2, 0},
		{2, 0},
		{7, 0}, // known
		{3, 0},
		{9, 0},
		{4, 1}, // one more
		{0, 0},
		{0, 0},
		{0, 0},
		{3, 0},
		{3, 0},
		{3, 0},
	} {
		if leaked := a.sample(step.surplus); leaked != step.leaked {
			t.Errorf("sample %d, a surplus of %d: %d leaked, want %d", i, step.surplus, leaked, step.leaked)
		}
	}
}
