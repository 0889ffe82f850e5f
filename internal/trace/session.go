package trace

import (
	"cmp"
	"slices"
	"time"
)

// layout lets sessions begin one after the other, where a trace has only the
// times within each.
type layout struct {
	// gap is the time between the beginnings of two sessions.
	gap time.Duration
	// fromFirst: a session begins with its first request, not at its zero.
	fromFirst bool
}

// apply moves the requests to their times. Sessions are taken in the order of
// their names, shorter ones first so that numbers are in order: it must not matter
// which stands first in the file.
func (l layout) apply(requests []Request) {
	first := make(map[string]time.Duration)
	for _, r := range requests {
		if t, ok := first[r.Session]; !ok || r.Arrival < t {
			first[r.Session] = r.Arrival
		}
	}
	names := make([]string, 0, len(first))
	for name := range first {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	move := make(map[string]time.Duration, len(names))
	for i, name := range names {
		move[name] = time.Duration(i) * l.gap
		if l.fromFirst {
			move[name] -= first[name]
		}
	}
	for i := range requests {
		requests[i].Arrival += move[requests[i].Session]
	}
}
