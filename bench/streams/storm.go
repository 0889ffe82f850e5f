package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// stormRow is one storm: all clients leave at once and come back at once.
type stormRow struct {
	Meanwhile string `json:"meanwhile"`
	Streams   int    `json:"streams"`
	// ByEnvoy were sent on by Envoy's own choice, because warmpath was away.
	ByEnvoy int `json:"by_envoy"`
	// Counted is how many of those that came back warmpath counted as running, Served
	// how many the replicas had.
	Counted int `json:"counted"`
	Served  int `json:"served"`
	// Seconds is how long it took until all were back.
	Seconds float64 `json:"seconds"`
}

// rounds is how many storms there are, and storms what happens meanwhile, in turn.
const rounds = 10

func storms() []stormKind {
	return []stormKind{
		{name: "nothing", act: nothing},
		{name: "Envoy's connection to warmpath is cut", act: cutDecisions, away: true},
		{name: "nothing", act: nothing},
		{name: "Envoy is killed and started", first: func(s *system) { s.Envoy.Kill() }, act: startEnvoy, away: true},
	}
}

type stormKind struct {
	name string
	// first is done before the clients come back, act while they do.
	first func(*system)
	act   func(context.Context, *system) error
	// away: Envoy may not reach warmpath meanwhile.
	away bool
}

func cutDecisions(ctx context.Context, s *system) error {
	defer s.decisions.Mend()
	for range 3 {
		s.decisions.Cut()
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		s.decisions.Mend()
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func startEnvoy(ctx context.Context, s *system) error { return s.StartEnvoy(ctx) }

func nothing(context.Context, *system) error { return nil }

func measureStorm(ctx context.Context, o options, r *report) (err error) {
	s, err := start(ctx, o, setup{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	n := o.streams * 2 / 5
	if err := s.cycle(ctx, s.crowd(o, "warm"), n/4); err != nil {
		return err
	}
	before, err := s.vitals(ctx)
	if err != nil {
		return err
	}
	for i := range rounds {
		if o.short && i == len(storms()) {
			break
		}
		kind := storms()[i%len(storms())]
		row, err := s.storm(ctx, o, kind, i, n)
		if err != nil {
			return fmt.Errorf("storm %d, %s: %w", i, kind.name, err)
		}
		r.Storms = append(r.Storms, row)
	}
	after, err := s.vitals(ctx)
	if err != nil {
		return err
	}
	r.AfterStorms = fmt.Sprintf("before the storms %v; after them %v", before, after)
	const moreGoroutines, moreHeap = 30, 8 << 20
	if after.Running != 0 || after.Goroutines > before.Goroutines+moreGoroutines || after.Live > before.Live+moreHeap {
		r.wrong("storm: left behind: %d requests, %v, before %v", after.Running, after, before)
	}
	return nil
}

func (s *system) crowd(o options, name string) *crowd {
	return &crowd{url: s.URL, name: name, bytes: 1 << 10, tokens: 3, seed: o.seed}
}

// storm has n clients open responses, leave all at once and come back all at once,
// while something happens.
func (s *system) storm(ctx context.Context, o options, kind stormKind, number, n int) (row stormRow, err error) {
	row = stormRow{Meanwhile: kind.name, Streams: n}
	c := s.crowd(o, fmt.Sprintf("calm-%d", number))
	all, err := c.open(ctx, n)
	if err != nil {
		return row, err
	}
	begin := time.Now()
	c.leave(all)
	if kind.first != nil {
		kind.first(s)
	}
	acted := make(chan error, 1)
	go func() { acted <- kind.act(ctx, s) }()
	back := s.crowd(o, fmt.Sprintf("storm-%d", number))
	back.atOnce = n
	all, err = back.open(ctx, n)
	if err := errors.Join(err, <-acted); err != nil {
		return row, err
	}
	row.Seconds = time.Since(begin).Seconds()
	row.ByEnvoy = byEnvoy(all)
	if err := s.counted(ctx, kind, &row); err != nil {
		return row, err
	}
	if err := s.end(ctx, back, all); err != nil {
		return row, err
	}
	return row, s.steered(ctx, o, number)
}

// steered waits until Envoy asks warmpath again for every request: it leaves one
// alone for half a second that could not be reached.
func (s *system) steered(ctx context.Context, o options, number int) error {
	tries := 0
	return s.Await(ctx, "Envoy to ask warmpath again", func() error {
		tries++
		c := s.crowd(o, fmt.Sprintf("probe-%d-%d", number, tries))
		all, err := c.open(ctx, 32)
		if err != nil {
			return err
		}
		if err := s.end(ctx, c, all); err != nil {
			return err
		}
		if n := byEnvoy(all); n > 0 {
			return fmt.Errorf("%d of %d were sent on by Envoy's own choice", n, len(all))
		}
		return nil
	})
}

// counted waits until only those run that came back, everywhere, and warmpath counts
// those that it decided. It does not count a stream that was cut, or on which Envoy
// gave up waiting because the machine is too slow.
func (s *system) counted(ctx context.Context, kind stormKind, row *stormRow) error {
	return s.Await(ctx, "counts of those that are back", func() error {
		running, err := s.Metric(ctx, "warmpath_outstanding_requests")
		if err != nil {
			return err
		}
		row.Counted, row.Served = int(running), 0
		for _, replica := range s.Replicas.Stats() {
			row.Served += int(replica.Outstanding)
		}
		decided := row.Streams - row.ByEnvoy
		if row.Served != row.Streams || row.Counted > decided || !kind.away && row.ByEnvoy == 0 && row.Counted != decided {
			return fmt.Errorf("%d of %d are at the replicas, warmpath counts %d, %d were decided", row.Served, row.Streams, row.Counted, decided)
		}
		return nil
	})
}

func (r *report) stormTable(b *strings.Builder) {
	if len(r.Storms) == 0 {
		return
	}
	b.WriteString("\n| storm | meanwhile | clients | all back after, s | by Envoy's choice | counted by warmpath | at the replicas |\n|---|---|---|---|---|---|---|\n")
	for i, s := range r.Storms {
		fmt.Fprintf(b, "| %d | %s | %d | %.1f | %d | %d | %d |\n", i+1, s.Meanwhile, s.Streams, s.Seconds, s.ByEnvoy, s.Counted, s.Served)
	}
	fmt.Fprintf(b, "\nwarmpath had %s.\n", r.AfterStorms)
}
