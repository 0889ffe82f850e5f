package main

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

// observer sees what all routers of a run decide. A run is one goroutine.
type observer struct {
	members     []sim.Member
	outstanding map[int]int // by replica, of all routers
	total       int
	changed     time.Duration
	area        float64 // requests × seconds up to there

	// threshold is the bound to check decisions against: 0 is that of
	// concurrencyThreshold auto with prefixLength auto, less is none. With several
	// routers each keeps its own, which this does not see.
	threshold int
	overBound int

	// picked is told of every decision, if set.
	picked func(now time.Duration, j *sim.Job, c sim.Choice)
}

// watch lets the observer see a policy.
func (o *observer) watch(m sim.Maker) sim.Maker {
	o.outstanding = make(map[int]int)
	return func(router, routers int) sim.Policy { return &observed{m(router, routers), o} }
}

type observed struct {
	sim.Policy
	o *observer
}

// Members implements sim.Policy.
func (p *observed) Members(now time.Duration, m []sim.Member) {
	p.o.members = m
	p.Policy.Members(now, m)
}

// Pick implements sim.Policy.
func (p *observed) Pick(now time.Duration, q *sim.Query) sim.Choice {
	c := p.Policy.Pick(now, q)
	if p.o.threshold >= 0 && p.o.isOver(c.Replica) {
		p.o.overBound++
	}
	p.o.count(now, c.Replica, 1)
	if p.o.picked != nil {
		p.o.picked(now, q.Job, c)
	}
	return c
}

// Done implements sim.Policy.
func (p *observed) Done(now time.Duration, replica int, j *sim.Job) {
	p.o.count(now, replica, -1)
	p.Policy.Done(now, replica, j)
}

func (o *observer) count(now time.Duration, replica, change int) {
	o.area += float64(o.total) * (now - o.changed).Seconds()
	o.changed = now
	o.total += change
	o.outstanding[replica] += change
}

// isOver tells whether a replica is at its bound while another has room. The bound
// is written down here once more, so that a mistake there shows.
func (o *observer) isOver(chosen int) bool {
	weights := 0
	for _, m := range o.members {
		weights += m.Weight
	}
	perWeight := float64(o.total+1) / float64(weights)
	over, room := false, false
	for _, m := range o.members {
		bound := float64(o.threshold)
		if o.threshold == 0 {
			mean := perWeight * float64(m.Weight)
			bound = math.Ceil(max(2*mean, mean+32))
		}
		full := float64(o.outstanding[m.Replica]) >= bound
		room = room || !full
		over = over || full && m.Replica == chosen
	}
	return over && room
}

// mean is how many requests were outstanding in the mean, until the last change.
func (o *observer) mean() float64 { return o.area / max(o.changed.Seconds(), 1e-9) }
