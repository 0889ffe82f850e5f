package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// idleRow is what a warmpath costs that has nothing to do but to know its endpoints
// and to ask them for their health.
type idleRow struct {
	Endpoints int     `json:"endpoints"`
	Seconds   float64 `json:"seconds"`
	// CPU is in seconds a minute, Bytes and Objects are allocated in a second.
	CPU     float64 `json:"cpu_seconds_a_minute"`
	Bytes   float64 `json:"bytes_a_second"`
	Objects float64 `json:"objects_a_second"`
	Vitals  vitals  `json:"vitals"`
}

// maxIdleCPU is how much of a processor warmpath may take that has nothing to do, in
// seconds a minute: some of its own, and 60 probes of each endpoint, each with a
// connection of its own.
func maxIdleCPU(endpoints int) float64 { return 2 + 60*0.0004*float64(endpoints) }

func measureIdle(ctx context.Context, o options, r *report) error {
	for _, n := range []int{7, 1000} {
		if o.short && n > 7 {
			n = 70
		}
		row, err := idle(ctx, o, n)
		if err != nil {
			return fmt.Errorf("%d endpoints: %w", n, err)
		}
		r.Idle = append(r.Idle, row)
		if row.CPU > maxIdleCPU(n) && !o.short { // two seconds tell nothing
			r.wrong("idle: %d endpoints cost %.2f seconds of CPU a minute, at most %.1f", n, row.CPU, maxIdleCPU(n))
		}
	}
	return nil
}

// used is what a process has used since its start.
type used struct{ cpu, bytes, objects float64 }

func (s *system) used(ctx context.Context) (u used, err error) {
	for name, to := range map[string]*float64{
		"process_cpu_seconds_total": &u.cpu, "go_memstats_alloc_bytes_total": &u.bytes, "go_memstats_mallocs_total": &u.objects,
	} {
		if *to, err = s.Metric(ctx, name); err != nil {
			return u, err
		}
	}
	return u, nil
}

func idle(ctx context.Context, o options, endpoints int) (row idleRow, err error) {
	s, err := start(ctx, o, setup{replicas: endpoints})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.Await(ctx, "all endpoints to be healthy", func() error { return s.healthy(ctx, endpoints) }); err != nil {
		return row, err
	}
	// The scrapes cost too: twice as many are done first, to be taken off.
	var at [4]used
	for i := range at {
		if i == 3 {
			err = wait(ctx, o.idle)
		}
		if err == nil {
			at[i], err = s.used(ctx)
		}
		if err != nil {
			return row, err
		}
	}
	row = idleRow{Endpoints: endpoints, Seconds: o.idle.Seconds()}
	rate := func(of func(used) float64) float64 {
		scrape := (of(at[2]) - of(at[0])) / 2
		return max(0, of(at[3])-of(at[2])-scrape) / row.Seconds
	}
	row.CPU = 60 * rate(func(u used) float64 { return u.cpu })
	row.Bytes = rate(func(u used) float64 { return u.bytes })
	row.Objects = rate(func(u used) float64 { return u.objects })
	row.Vitals, err = s.read(ctx)
	return row, err
}

// healthy fails unless so many endpoints are.
func (s *system) healthy(ctx context.Context, want int) error {
	status, err := s.Status(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range status.Endpoints {
		if e.State == fleet.Healthy.String() {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d of %d are healthy", n, want)
	}
	return nil
}

func (r *report) idleTable(b *strings.Builder) {
	if len(r.Idle) == 0 {
		return
	}
	b.WriteString("\n| endpoints | measured for | CPU, s a minute | allocated, KiB a second | objects a second | resident, MiB | goroutines |\n|---|---|---|---|---|---|---|\n")
	for _, row := range r.Idle {
		fmt.Fprintf(b, "| %d | %v | %.2f | %.1f | %.0f | %.0f | %d |\n", row.Endpoints, time.Duration(row.Seconds*float64(time.Second)), row.CPU,
			row.Bytes/1024, row.Objects, mebibytes(row.Vitals.Resident), row.Vitals.Goroutines)
	}
}
