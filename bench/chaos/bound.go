package main

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/replica"
)

// visit is a time that a request spent at a replica.
type visit struct {
	replica    string
	begin, end time.Time
}

// beyond counts the visits that began when as many as the bound were at their
// replica already. The router takes a slot before a request is sent and gives it
// back after it has left, so what replicas see at one time is at most what the
// router counts.
func beyond(visits []visit, bound int) int {
	type event struct {
		at     time.Time
		change int
	}
	events := make(map[string][]event)
	for _, v := range visits {
		events[v.replica] = append(events[v.replica], event{v.begin, 1}, event{v.end, -1})
	}
	over := 0
	for _, list := range events {
		slices.SortFunc(list, func(a, b event) int {
			if c := a.at.Compare(b.at); c != 0 {
				return c
			}
			return a.change - b.change
		})
		n := 0
		for _, e := range list {
			if n += e.change; e.change > 0 && n > bound {
				over++
			}
		}
	}
	return over
}

// visits are those whose slots the router must have held: what it decided and
// nobody disturbed, at the first endpoint that it named. A retry takes its slot when
// the response has begun, whatever the load; a client that leaves frees it before
// the replica notices.
func (r *round) visits(byID map[string]*traffic.Sent) []visit {
	var list []visit
	r.records(func(name string, got *replica.Record) {
		q := byID[got.RequestID]
		if q == nil || q.Replica != name || len(q.Choices) == 0 || q.Attempts > 1 || q.Outcome == traffic.Left ||
			within(q, r.windows) || got.Ended.IsZero() {
			return
		}
		list = append(list, visit{name, got.Began, got.Ended})
	})
	return list
}

// records calls do with everything that the replicas have got.
func (r *round) records(do func(name string, got *replica.Record)) {
	for _, one := range r.stack.Replicas.Replicas() {
		for _, got := range one.Requests() {
			do(one.Name(), &got)
		}
	}
}
