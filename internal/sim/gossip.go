package sim

import (
	"time"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

// Sharer is a policy whose routers tell each other what they have done.
type Sharer interface {
	// Begin says that there will be others to tell, of so many in all.
	Begin(routers int)
	// Share is what a router tells of itself at an instant.
	Share() ([]merge.Endpoint, []merge.Placement)
	// Hear takes in what another one told, Heard ends a round of it.
	Hear(now time.Duration, m merge.Message)
	Heard(now time.Duration)
}

// gossip lets the routers tell each other, every interval. What is told arrives an
// interval later, so that it is one to two intervals old when the next comes.
type gossip struct {
	interval, next time.Duration
	sequence       uint64
	onTheWay       []merge.Message // by router
}

// begin tells the routers that they will share.
func (g *gossip) begin(routers []Policy) {
	if g.interval <= 0 || len(routers) < 2 {
		return
	}
	for _, p := range routers {
		if s, ok := p.(Sharer); ok {
			s.Begin(len(routers))
		}
	}
}

// rounds does what is due until at. Between two events nothing changes, so two
// rounds do as well as any number.
func (g *gossip) rounds(at time.Duration, routers []Policy) {
	if g.interval <= 0 || len(routers) < 2 || at < g.next {
		return
	}
	if late := (at - g.next) / g.interval; late > 2 {
		g.next += (late - 2) * g.interval
	}
	for ; g.next <= at; g.next += g.interval {
		g.round(routers)
	}
}

func (g *gossip) round(routers []Policy) {
	g.sequence++
	for i, p := range routers {
		s, ok := p.(Sharer)
		if !ok {
			return
		}
		for from, told := range g.onTheWay {
			if from != i {
				s.Hear(g.next, told)
			}
		}
		s.Heard(g.next)
	}
	g.onTheWay = g.onTheWay[:0]
	for i, p := range routers {
		endpoints, placements := p.(Sharer).Share()
		g.onTheWay = append(g.onTheWay, merge.Message{Router: uint64(i) + 1, Sequence: g.sequence, Endpoints: endpoints, Placements: placements})
	}
}
