package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Requests that arrive at once stay in the order of the file, and the first
// arrives at 0.
func TestTiesKeepTheirOrder(t *testing.T) {
	var b strings.Builder
	const n = 100 // small slices are sorted stably by any sort
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 5, "output_length": %d, "hash_ids": [1]}`+"\n", 5000-i%2*1000, i)
	}
	got, err := Read(strings.NewReader(b.String()), "mooncake", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got.Requests {
		output, at := 2*i+1, time.Duration(0)
		if i >= n/2 {
			output, at = 2*i-n, time.Second
		}
		if r.Output != output || r.Arrival != at {
			t.Errorf("place %d has line %d at %v, want line %d at %v", i, r.Output, r.Arrival, output, at)
		}
	}
}

// Agents share tools and system prompt exactly if model and both lengths are
// equal and they begin as their session does.
func TestWekaShares(t *testing.T) {
	session := func(id, model string, tools, system int, first ...string) string {
		var requests []string
		for i, ids := range first {
			requests = append(requests, fmt.Sprintf(`{"t": %d, "model": %q, "in": 200, "out": 1, "hash_ids": [%s]}`, i, model, ids))
		}
		return fmt.Sprintf(`{"id": %q, "block_size": 64, "tool_tokens": %d, "system_tokens": %d, "requests": [%s]}`+"\n",
			id, tools, system, strings.Join(requests, ", "))
	}
	got, err := Read(strings.NewReader(
		session("a", "m", 64, 70, "1, 2, 3", "8, 2, 3")+
			session("b", "m", 64, 70, "5, 6, 7", "5, 6, 9")+
			session("c", "m", 65, 69, "1, 2, 3")+
			session("d", "n", 64, 70, "1, 2, 3")), "weka", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]int]int{{0, 2}: 2, {0, 3}: 2, {2, 3}: 2} // those of a and b that begin alike
	for i := range got.Requests {
		for j := i + 1; j < len(got.Requests); j++ {
			if n := common(got.Requests[i].Chunks, got.Requests[j].Chunks); n != want[[2]int{i, j}] {
				t.Errorf("requests %d and %d share %d chunks, want %d", i, j, n, want[[2]int{i, j}])
			}
		}
	}
	if at := got.Requests[3].Arrival; at != time.Minute+time.Second {
		t.Errorf("the second of b arrives at %v", at)
	}
}
