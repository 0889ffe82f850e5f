package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// sample is what warmpath took at one moment.
type sample struct {
	Seconds    float64 `json:"seconds"`
	Resident   float64 `json:"resident_mib"`
	Heap       float64 `json:"heap_mib"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	Running    int     `json:"running"`
}

// trend compares what a figure was in the second quarter of a soak with the last.
type trend struct {
	Name   string  `json:"name"`
	Second float64 `json:"median_of_second_quarter"`
	Last   float64 `json:"median_of_last_quarter"`
	// Allowed is how much more is no growth: what a few connections and the garbage
	// of one moment are worth.
	Allowed float64 `json:"allowed"`
	Grows   bool    `json:"grows"`
}

// sampling is the time between two samples.
const sampling = 2 * time.Second

// soak plays rounds with random faults, of those that let warmpath live, until the
// time is over.
func (s *system) soak(ctx context.Context, o options, list []scenario, r *report, progress io.Writer) error {
	begin := time.Now()
	samples := make(chan sample)
	sampled, stop := context.WithCancel(ctx)
	gathered := make(chan []sample)
	go func() { gathered <- gather(samples) }()
	go func() {
		defer close(samples)
		s.sampleAll(sampled, begin, samples)
	}()
	random := rand.New(rand.NewPCG(o.seed, 0))
	rows := make(map[string]*row)
	for number := 0; time.Since(begin) < o.soak && ctx.Err() == nil; number++ {
		sc, config := &list[random.IntN(len(list))], strategies[random.IntN(len(strategies))]
		next, err := s.play(ctx, sc, config, number, o.seed, o.pace)
		if err != nil {
			next = newRow(sc.name)
			next.Error = fmt.Sprintf("%s: %v", config.Strategy, err)
		}
		if rows[sc.name] == nil {
			rows[sc.name] = &next
		} else {
			rows[sc.name].add(next)
		}
		fmt.Fprintf(progress, "%4.0f s  %-40s %6d requests, wrong: %d\n", time.Since(begin).Seconds(), sc.name, next.Requests, next.wrong())
		if err != nil {
			break
		}
	}
	stop()
	r.Samples = <-gathered
	r.Trends = trends(r.Samples)
	for _, sc := range list {
		if rows[sc.name] != nil {
			r.Rows = append(r.Rows, *rows[sc.name])
		}
	}
	return ctx.Err()
}

func gather(samples <-chan sample) (all []sample) {
	for one := range samples {
		all = append(all, one)
	}
	return all
}

// sampleAll samples until ctx ends. A moment in which warmpath cannot answer is
// left out.
func (s *system) sampleAll(ctx context.Context, begin time.Time, to chan<- sample) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		asked, cancel := context.WithTimeout(ctx, sampling)
		v, err := s.vitals(asked)
		cancel()
		if err != nil {
			continue
		}
		to <- sample{
			Seconds: time.Since(begin).Seconds(), Resident: mebibytes(v.resident), Heap: mebibytes(v.heap),
			Goroutines: v.goroutines, Files: v.files, Running: v.running,
		}
	}
}

// enough samples, of two minutes, show a trend; in less, connections and memories
// are still filling.
const enough = 60

// trends compares the quarters.
func trends(samples []sample) []trend {
	var list []trend
	for _, of := range []struct {
		name    string
		value   func(sample) float64
		allowed float64
	}{
		{"resident memory, MiB", func(s sample) float64 { return s.Resident }, 12},
		{"live heap, MiB", func(s sample) float64 { return s.Heap }, 8},
		{"goroutines", func(s sample) float64 { return float64(s.Goroutines) }, 30},
		{"open files", func(s sample) float64 { return float64(s.Files) }, 10},
	} {
		n := len(samples)
		t := trend{Name: of.name, Allowed: of.allowed, Second: median(samples[n/4:n/2], of.value), Last: median(samples[n*3/4:], of.value)}
		t.Grows = n >= enough && t.Last > t.Second+t.Allowed
		list = append(list, t)
	}
	return list
}

// median of the values of some samples; 0 of none.
func median(samples []sample, value func(sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// soaked renders what grows and some samples.
func (r *report) soaked(b *strings.Builder) {
	if len(r.Trends) == 0 {
		return
	}
	b.WriteString("\n\n| of warmpath | median of the second quarter | of the last | allowed more | grows |\n|---|---|---|---|---|\n")
	for _, t := range r.Trends {
		fmt.Fprintf(b, "| %s | %.1f | %.1f | %.0f | %v |\n", t.Name, t.Second, t.Last, t.Allowed, t.Grows)
	}
	b.WriteString("\n| at s | resident MiB | live MiB | goroutines | files | requests in flight |\n|---|---|---|---|---|---|\n")
	step := max(1, len(r.Samples)/15)
	for i := 0; i < len(r.Samples); i += step {
		s := r.Samples[i]
		fmt.Fprintf(b, "| %.0f | %.1f | %.1f | %d | %d | %d |\n", s.Seconds, s.Resident, s.Heap, s.Goroutines, s.Files, s.Running)
	}
}
