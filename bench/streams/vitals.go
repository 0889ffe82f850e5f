package main

import (
	"context"
	"errors"
	"fmt"
)

// vitals are what warmpath's process has, in bytes and numbers, right after a
// garbage collection.
type vitals struct {
	Resident   int `json:"resident"`
	Live       int `json:"live_heap"`
	Stacks     int `json:"stacks"`
	Goroutines int `json:"goroutines"`
	// Running is how many requests it counts as running.
	Running int `json:"running"`
}

// scrapes is after how many scrapes a garbage collection must have happened. Each
// takes some 100 KiB, and one is due after at least 32 MiB.
const scrapes = 20_000

// vitals has warmpath collect its garbage, which a scrape brings nearer, twice: what
// the first leaves in pools the second takes. Then it reads.
func (s *system) vitals(ctx context.Context) (v vitals, err error) {
	last, collections := -1.0, 0
	for range scrapes {
		at, err := s.Metric(ctx, "go_memstats_last_gc_time_seconds")
		if err != nil {
			return v, err
		}
		if at != last && last != -1 {
			collections++
		}
		if last = at; collections == 3 {
			return s.read(ctx)
		}
	}
	return v, errors.New("no garbage collection in warmpath")
}

// read takes the least of some readings: what is dead counts until it is swept.
func (s *system) read(ctx context.Context) (least vitals, err error) {
	for i := range 5 {
		var v vitals
		for name, to := range map[string]*int{
			"process_resident_memory_bytes": &v.Resident, "go_memstats_heap_alloc_bytes": &v.Live, "go_memstats_stack_inuse_bytes": &v.Stacks,
			"go_goroutines": &v.Goroutines, "warmpath_requests_in_flight": &v.Running,
		} {
			n, err := s.Metric(ctx, name)
			if err != nil {
				return v, err
			}
			*to = int(n)
		}
		if i == 0 || v.Live < least.Live {
			least = v
		}
	}
	return least, nil
}

// String is for people.
func (v vitals) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MiB alive, %.1f MiB of stacks, %.1f MiB resident", v.Goroutines, mebibytes(v.Live), mebibytes(v.Stacks), mebibytes(v.Resident))
}

func mebibytes(n int) float64 { return float64(n) / (1 << 20) }
