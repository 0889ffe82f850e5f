package modelserver

import (
	"slices"

	"github.com/warmpath/warmpath/internal/fleet"
)

// queue says whose turn it is to be asked: those that are new, or that have changed,
// before those that were asked before, and of the latter who has waited longest.
type queue struct {
	members fleet.Set
	turns   map[string]turn // of the members
	// fresh and due are those that wait, in order.
	fresh, due []string
}

// turn is how it stands with a member.
type turn uint8

const (
	idle turn = iota
	waiting
	waitingFresh
	asking
)

// replace replaces the members.
func (q *queue) replace(members fleet.Set) {
	turns := make(map[string]turn, members.Len())
	var fresh []string
	for _, e := range members.Endpoints() {
		had, known := q.turns[e.Address]
		if i, was := q.members.Index(e.Address); !known || had == waitingFresh || !was || q.members.At(i) != e {
			had = waitingFresh
			fresh = append(fresh, e.Address)
		}
		turns[e.Address] = had
	}
	q.members, q.turns, q.fresh = members, turns, fresh
	q.due = slices.DeleteFunc(q.due, func(address string) bool { return turns[address] != waiting })
}

// round makes all wait who are not asked just now. Who waits already keeps its place.
func (q *queue) round() {
	for _, e := range q.members.Endpoints() {
		if q.turns[e.Address] == idle {
			q.turns[e.Address] = waiting
			q.due = append(q.due, e.Address)
		}
	}
}

// next returns who is to be asked now; onlyFresh leaves out who was asked before. It is
// not ok if nobody waits.
func (q *queue) next(onlyFresh bool) (address string, ok bool) {
	list := &q.fresh
	if len(q.fresh) == 0 && !onlyFresh {
		list = &q.due
	}
	if len(*list) == 0 {
		return "", false
	}
	address, *list = (*list)[0], (*list)[1:]
	q.turns[address] = asking
	return address, true
}

// answered notes that who was asked has answered, or has not in its time.
func (q *queue) answered(address string) {
	if q.turns[address] == asking {
		q.turns[address] = idle
	}
}
