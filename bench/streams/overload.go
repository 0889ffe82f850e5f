package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// overloadRow is what became of more requests than warmpath may serve at once.
type overloadRow struct {
	Requested int `json:"requested"`
	Limit     int `json:"limit"`
	Decided   int `json:"decided"`
	Refused   int `json:"refused"`
	ByEnvoy   int `json:"by_envoy"`
	Peak      int `json:"peak"`
}

func (r *overloadRow) wrong() error {
	if r.Decided != r.Limit || r.Peak != r.Limit || r.Refused != r.Requested-r.Limit || r.ByEnvoy != r.Refused {
		return fmt.Errorf("overload: %+v, want as many decided as the limit, never more, and the others refused and sent on by Envoy", *r)
	}
	return nil
}

// measureOverload holds five times as many responses open as warmpath may serve.
func measureOverload(ctx context.Context, o options, r *report) (err error) {
	row := &overloadRow{Requested: o.streams, Limit: o.streams / 5}
	s, err := start(ctx, o, setup{extra: fmt.Sprintf("limits: {requests: %d}", row.Limit)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	watching, stop := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- s.peak(watching) }()
	c := s.crowd(o, "over")
	all, err := c.open(ctx, o.streams)
	row.Decided, row.Refused = s.tell(ctx)
	stop()
	row.Peak = max(<-peak, row.Decided)
	if err != nil {
		return err
	}
	row.ByEnvoy = byEnvoy(all)
	r.Overload = row
	if err := row.wrong(); err != nil {
		r.wrong("%v", err)
	}
	return s.release(ctx, c, all)
}

// tell returns how many requests warmpath serves, and how many it has refused.
func (s *system) tell(ctx context.Context) (running, refused int) {
	for name, to := range map[string]*int{"warmpath_requests_in_flight": &running, "warmpath_refused_total": &refused} {
		n, err := s.Metric(ctx, name)
		if err != nil {
			return -1, -1
		}
		*to = int(n)
	}
	return running, refused
}

// peak is the most that warmpath served at a time, until ctx ends.
func (s *system) peak(ctx context.Context) (most int) {
	for wait(ctx, 50*time.Millisecond) == nil {
		running, _ := s.tell(ctx)
		most = max(most, running)
	}
	return most
}

func (r *report) overloadTable(b *strings.Builder) {
	if v := r.Overload; v != nil {
		fmt.Fprintf(b, "\n| `limits.requests` | requested at once | decided | most at a time | refused and counted | by Envoy's choice | failed |\n|---|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d | 0 |\n",
			v.Limit, v.Requested, v.Decided, v.Peak, v.Refused, v.ByEnvoy)
	}
}
