package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// openRow is what responses that are held open take of warmpath.
type openRow struct {
	Bytes   int    `json:"body_bytes"`
	Traced  bool   `json:"traced"`
	Streams int    `json:"streams"`
	Before  vitals `json:"before"`
	Open    vitals `json:"open"`
	After   vitals `json:"after"`
	// Counted is how many of them warmpath had decided and counted, ByEnvoy how many
	// Envoy had sent on by itself.
	Counted int `json:"counted"`
	ByEnvoy int `json:"by_envoy"`
	// OpenSeconds is how long it took to open all.
	OpenSeconds float64 `json:"open_seconds"`
}

// maxPerStream is how much of warmpath's memory an open response may take: resident,
// which includes what is dead and not collected, and what lives. In bytes.
const maxPerStream = 20 << 10

// maxStack is how much of it may be stack: stacks double, and a step beyond 8 KiB on
// the way to a decision costs every stream 8 more.
const maxStack = 12 << 10

// fewest is of how many streams resident memory tells something: of fewer it is what
// happens to be collected.
const fewest = 2000

// moreOnce is what connections, caches and the like may grow by, however few streams
// there are, in bytes.
const moreOnce = 6 << 20

// perStream is the difference of two readings for each stream, in bytes.
func (r *openRow) perStream(before, after int) float64 {
	return float64(after-before) / float64(max(r.Counted, 1))
}

func (r *openRow) resident() float64 { return r.perStream(r.Before.Resident, r.Open.Resident) }
func (r *openRow) stack() float64    { return r.perStream(r.Before.Stacks, r.Open.Stacks) }
func (r *openRow) live() float64 {
	return r.perStream(r.Before.Live+r.Before.Stacks, r.Open.Live+r.Open.Stacks)
}

// wrong says what is not as it should be.
func (r *openRow) wrong() error {
	var errs []error
	if n := r.resident(); n > maxPerStream && r.Streams >= fewest {
		errs = append(errs, fmt.Errorf("%.1f KiB of resident memory a stream, at most %d", n/1024, maxPerStream>>10))
	}
	most := float64(maxPerStream)
	if r.Streams < fewest { // what comes once is a large part of so few
		most += moreOnce / float64(r.Streams)
	}
	if n := r.live(); n > most {
		errs = append(errs, fmt.Errorf("%.1f KiB alive a stream, at most %.1f", n/1024, most/1024))
	}
	if n := r.stack(); n > maxStack {
		errs = append(errs, fmt.Errorf("%.1f KiB of stack a stream, at most %d", n/1024, maxStack>>10))
	}
	if r.Counted+r.ByEnvoy != r.Streams || r.ByEnvoy*100 > r.Streams {
		errs = append(errs, fmt.Errorf("of %d streams %d are counted, %d were sent on by Envoy", r.Streams, r.Counted, r.ByEnvoy))
	}
	const moreGoroutines, moreHeap = 30, 4 << 20
	if r.After.Running != 0 || r.After.Goroutines > r.Before.Goroutines+moreGoroutines || r.After.Live > r.Before.Live+moreHeap {
		errs = append(errs, fmt.Errorf("left behind: %d requests, %v, before %v", r.After.Running, r.After, r.Before))
	}
	return errors.Join(errs...)
}

// measureOpen holds responses open, with small and large bodies, with and without
// traces.
func measureOpen(ctx context.Context, o options, r *report) error {
	for _, traced := range []bool{false, true} {
		for _, bytes := range []int{1 << 10, 32 << 10} {
			if o.short && traced != (bytes > 1<<10) {
				continue
			}
			row, err := open(ctx, o, traced, bytes)
			if err != nil {
				return fmt.Errorf("%d bytes, traced %v: %w", bytes, traced, err)
			}
			r.Open = append(r.Open, row)
			if err := row.wrong(); err != nil {
				r.wrong("open, %d bytes, traced %v: %v", bytes, traced, err)
			}
		}
	}
	return nil
}

func open(ctx context.Context, o options, traced bool, bytes int) (row openRow, err error) {
	row = openRow{Bytes: bytes, Traced: traced, Streams: o.streams}
	s, err := start(ctx, o, setup{traced: traced})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c := &crowd{url: s.URL, name: "warm", bytes: bytes, tokens: 3, traced: traced, seed: o.seed}
	// The first streams make connections and fill memories that stay.
	if err := s.cycle(ctx, c, min(o.streams, 500)/2); err != nil {
		return row, err
	}
	if row.Before, err = s.vitals(ctx); err != nil {
		return row, err
	}
	c.name = "held"
	begin := time.Now()
	all, err := c.open(ctx, o.streams)
	if err != nil {
		return row, err
	}
	row.OpenSeconds = time.Since(begin).Seconds()
	row.ByEnvoy = byEnvoy(all)
	if row.Open, err = s.vitals(ctx); err != nil {
		return row, err
	}
	row.Counted = row.Open.Running
	if err := s.end(ctx, c, all); err != nil {
		return row, err
	}
	row.After, err = s.vitals(ctx)
	return row, err
}

// byEnvoy is how many of the responses Envoy chose the endpoint for.
func byEnvoy(all []*held) (n int) {
	for _, h := range all {
		if h != nil && len(h.choices) == 0 {
			n++
		}
	}
	return n
}

// cycle opens n responses and ends them.
func (s *system) cycle(ctx context.Context, c *crowd, n int) error {
	all, err := c.open(ctx, n)
	if err != nil {
		return err
	}
	return s.end(ctx, c, all)
}

// end lets responses end, and looks at what was served and at what is left.
func (s *system) end(ctx context.Context, c *crowd, all []*held) error {
	if err := s.asDecided(c, all); err != nil {
		return err
	}
	return s.release(ctx, c, all)
}

// release lets responses end that replicas hold, and waits until nothing is left. A
// replica sends the headers before it holds: who is let go too early is held for ever.
func (s *system) release(ctx context.Context, c *crowd, all []*held) error {
	if err := s.Await(ctx, "all responses to be held", func() error {
		n := 0
		for _, replica := range s.Replicas.Stats() {
			n += int(replica.Held)
		}
		if n != len(all) {
			return fmt.Errorf("%d of %d are", n, len(all))
		}
		return nil
	}); err != nil {
		return err
	}
	s.Replicas.Release()
	if err := c.finish(all); err != nil {
		return err
	}
	c.dismiss()
	return s.rest(ctx)
}

// asDecided compares where responses come from with where they were sent, and the
// bodies that arrived with those that were sent.
func (s *system) asDecided(c *crowd, all []*held) error {
	failures := newTally()
	arrived := make(map[string]bool)
	for _, replica := range s.Replicas.Replicas() {
		for _, got := range replica.Requests() {
			if want, ours := c.sums.Load(got.RequestID); ours {
				arrived[got.RequestID] = true
				if want != got.Body.SHA256 {
					failures.add("altered")
				}
			}
		}
	}
	for _, h := range all {
		switch {
		case h == nil:
		case !arrived[h.id]:
			failures.add("not at any replica")
		case len(h.choices) >= h.attempts && h.attempts > 0 && h.choices[h.attempts-1] != h.replica:
			failures.add("served elsewhere than decided")
		}
	}
	return failures.err("not as sent")
}

// rest waits until nothing runs any more, and fails if a slot was lost.
func (s *system) rest(ctx context.Context) error {
	for _, await := range []func(context.Context) error{s.AwaitRest, s.AwaitTruth, s.AwaitEnvoyRest} {
		if err := await(ctx); err != nil {
			return err
		}
	}
	leaked, err := s.Metric(ctx, "warmpath_leaked_total")
	if err == nil && leaked != 0 {
		err = fmt.Errorf("%v slots leaked", leaked)
	}
	return err
}
