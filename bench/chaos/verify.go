package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/replica"
)

// verify compares what was sent with what the replicas got, and what warmpath says
// with the truth. All requests have ended.
func (r *round) verify(ctx context.Context, before vitals) (row, error) {
	result := newRow(r.scenario.name)
	passed, missed, err := r.ownCounts(ctx)
	if err != nil {
		return result, err
	}
	byID := make(map[string]*traffic.Sent)
	for _, q := range r.traffic.Sent() {
		byID[q.ID] = q
		r.judge(q, &result)
	}
	r.arrived(byID, &result)
	r.routed(byID, passed, missed, &result)
	r.left(ctx, before, &result)
	return result, nil
}

// ownCounts are how many requests Envoy says that it sent on by itself although
// nothing disturbed warmpath, and how many warmpath saw served elsewhere than it
// named.
func (r *round) ownCounts(ctx context.Context) (passed, missed int, err error) {
	if passed, err = r.passedOver(ctx); err != nil {
		return 0, 0, err
	}
	now, err := r.stack.Metric(ctx, "warmpath_override_missed_total")
	return passed - r.passedWithin, int(r.missed + now), err
}

// judge books how a request ended.
func (r *round) judge(q *traffic.Sent, result *row) {
	if q.Outcome == traffic.Refused && within(q, r.cuts) {
		return // nothing was sent: a balancer would have asked another Envoy
	}
	result.Requests++
	if !q.Failed() {
		return
	}
	why := ""
	if r.scenario.excuse != nil {
		why = r.scenario.excuse(r, q)
	}
	if why != "" {
		result.Excused[why]++
		return
	}
	result.Failed++
	result.note("%s, %s: %s", r.config.Strategy, q.Form.Name, q.Outcome)
}

// arrived compares the bodies, and how often they came.
func (r *round) arrived(byID map[string]*traffic.Sent, result *row) {
	at := make(map[string][]string)
	r.records(func(name string, got *replica.Record) {
		q := byID[got.RequestID]
		if q == nil || !q.Matches(got) {
			result.Altered++
			result.note("%s, altered: %s got %d of %s (%s)", r.config.Strategy, name, got.Body.Length, got.RequestID, got.BodyError)
			return
		}
		at[q.ID] = append(at[q.ID], name)
	})
	for id, q := range byID {
		switch names := at[id]; {
		case q.Replica != "" && !slices.Contains(names, q.Replica):
			result.Altered++
			result.note("%s, lost: %s of %s has no record at %s", r.config.Strategy, q.Form.Name, q.Outcome, q.Replica)
		case len(names) > max(1, r.scenario.attempts):
			result.Altered++
			result.note("%s, repeated: %s %s at %v", r.config.Strategy, q.Form.Name, q.Outcome, names)
		}
	}
}

// routed compares where requests were served with where they were to go.
func (r *round) routed(byID map[string]*traffic.Sent, passed, missed int, result *row) {
	own := 0 // chosen by Envoy although nothing disturbed warmpath
	for _, q := range byID {
		if q.Status == 0 {
			continue // nobody could tell
		}
		switch {
		case len(q.Choices) == 0:
			result.ByEnvoy++
			if !within(q, r.windows) {
				own++
			}
		case q.Replica == "", q.Attempts > len(q.Choices): // nobody answered, or those named are used up
		case q.Attempts < 1, q.Choices[q.Attempts-1] != q.Replica:
			result.Misrouted++
			result.note("%s, %s: attempt %d of %v at %s", r.config.Strategy, q.Form.Name, q.Attempts, q.Choices, q.Replica)
		}
	}
	if unexplained := own - passed; unexplained > 0 {
		result.Misrouted += unexplained
		result.note("%s: %d requests without a choice, Envoy says %d of them were its own", r.config.Strategy, own, passed)
	}
	if missed > 0 {
		result.Misrouted += missed
		result.note("%s: warmpath counts %d served elsewhere than it named", r.config.Strategy, missed)
	}
	if !bounded(r.config) {
		return
	}
	// Where Envoy gave up waiting for an answer of ours in the middle of a request,
	// that runs on uncounted, and nobody knows where.
	uncounted := max(0, passed-own)
	if over := beyond(r.visits(byID), bound+uncounted); over > 0 {
		result.Over += over
		result.note("%s: %d requests began at a replica that had %d", r.config.Strategy, over, bound+uncounted)
	}
}

// patience is how long things may take to come to rest.
const patience = 20 * time.Second

// left looks for what has been left behind.
func (r *round) left(ctx context.Context, before vitals, result *row) {
	for _, check := range []func(context.Context) error{
		r.stack.AwaitRest, r.stack.AwaitTruth, r.stack.AwaitEnvoyRest,
		func(ctx context.Context) error { return r.backTo(ctx, before) },
	} {
		waiting, cancel := context.WithTimeout(ctx, patience)
		err := check(waiting)
		cancel()
		if err != nil {
			result.Leaked++
			result.note("%s: %v", r.config.Strategy, err)
		}
	}
}

// Beyond these warmpath has more than before: some connections' worth, and what the
// largest bodies and the memory of what was served where take.
const (
	moreGoroutines = 30
	moreFiles      = 30
	moreHeap       = 24 << 20
)

// backTo waits until warmpath has no more than before.
func (r *round) backTo(ctx context.Context, before vitals) error {
	return r.stack.Await(ctx, "goroutines, files and memory to be given back", func() error {
		now, err := r.vitals(ctx)
		if err == nil && (now.goroutines > before.goroutines+moreGoroutines || now.files > before.files+moreFiles || now.heap > before.heap+moreHeap) {
			err = fmt.Errorf("warmpath has %v, before %v", now, before)
		}
		return err
	})
}
