package main

import (
	"context"
	"fmt"
)

// vitals are what a process of warmpath takes.
type vitals struct {
	goroutines, files int
	// heap is what lived at the last garbage collection, resident what the system
	// has given, in bytes.
	heap, resident int
	// running is how many requests it counts.
	running int
}

// String is for people.
func (v vitals) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %.1f MiB alive, %.1f MiB resident", v.goroutines, v.files, mebibytes(v.heap), mebibytes(v.resident))
}

func mebibytes(n int) float64 { return float64(n) / (1 << 20) }

// ballast is what warmpath's garbage collector takes for alive and is not there:
// see cmd/warmpath.
const ballast = 64 << 20

// vitals asks warmpath.
func (s *system) vitals(ctx context.Context) (v vitals, err error) {
	for name, to := range map[string]*int{
		"go_goroutines": &v.goroutines, "process_open_fds": &v.files, "go_memstats_next_gc_bytes": &v.heap,
		"process_resident_memory_bytes": &v.resident, "warmpath_requests_in_flight": &v.running,
	} {
		n, err := s.stack.Metric(ctx, name)
		if err != nil {
			return v, err
		}
		*to = int(n)
	}
	// The next collection is due when the heap has grown by half of what lived after
	// the last.
	v.heap = max(0, v.heap*2/3-ballast)
	return v, nil
}
