package sim

import (
	"testing"
	"time"
)

// A job is at least a token each way, and is cut to what a cache can hold.
func TestNewJob(t *testing.T) {
	list := []uint64{1, 2, 3, 4}
	for _, c := range []struct {
		tokens, output, cache     int
		wantTokens, wantOut, want int // chunks
		cut                       bool
	}{
		{300, 20, 1000, 300, 20, 4, false},
		{0, 0, 1000, 1, 1, 4, false},
		{300, 20, 384, 300, 20, 4, false}, // 64 are left over
		{300, 20, 383, 299, 20, 4, true},
		{300, 900, 384, 240, 80, 3, true},
		{300, 20, 64, 1, 1, 0, true},
	} {
		j, cut := NewJob(7, time.Second, c.tokens, c.output, list, c.cache)
		if j.Tokens != c.wantTokens || j.Output != c.wantOut || len(j.Chunks) != c.want || cut != c.cut || j.At != time.Second {
			t.Errorf("%d + %d in %d: %+v, cut %v", c.tokens, c.output, c.cache, j, cut)
		}
	}
	a, _ := NewJob(1, 0, 300, 1, list, 1000)
	same, _ := NewJob(2, 0, 300, 1, list, 1000)
	longer, _ := NewJob(3, 0, 301, 1, list, 1000)
	empty, _ := NewJob(4, 0, 10, 1, nil, 1000)
	other, _ := NewJob(5, 0, 10, 1, nil, 1000)
	if a.Whole != same.Whole || a.Whole == longer.Whole || empty.Whole == other.Whole {
		t.Errorf("whole prompts %x %x %x %x %x", a.Whole, same.Whole, longer.Whole, empty.Whole, other.Whole)
	}
}
