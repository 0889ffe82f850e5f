package gossip

import (
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

// teller decides what of the endpoints' state is told when. It is pure.
type teller struct {
	router   uint64
	sequence uint64
	allAt    time.Duration // when everything was told
	told     map[string]*told
	byKey    map[uint64]string // the addresses in told
	// changed is whether other endpoints are told of than before.
	changed bool
}

// told is what the others were last told of an endpoint.
type told struct {
	key         uint64
	outstanding int64
	given       time.Duration
	// again is how many more times that it is idle is told: one message may be lost.
	again int
	seen  bool
}

// repeats is how many times in a row a change is told.
const repeats = 2

func newTeller(router uint64) teller {
	return teller{router: router, told: make(map[string]*told), byKey: make(map[uint64]string)}
}

// key is what messages call an endpoint, if it is one of those told of.
func (t *teller) key(address string) (uint64, bool) {
	x := t.told[address]
	if x == nil {
		return 0, false
	}
	return x.key, true
}

// begin prepares a round, end ends it: endpoints that were not seen between are
// forgotten.
func (t *teller) begin() {
	for _, x := range t.told {
		x.seen = false
	}
}

// due returns whether an endpoint is to be told of, and how it is called.
func (t *teller) due(address string, outstanding int64, given time.Duration, all bool) (key uint64, due bool) {
	x := t.told[address]
	if x == nil {
		x = &told{key: merge.Key(address)}
		t.told[address], t.byKey[x.key], t.changed = x, address, true
	}
	x.seen = true
	if x.outstanding != outstanding || x.given != given {
		x.outstanding, x.given, x.again = outstanding, given, repeats
	}
	due = all && (outstanding > 0 || given > 0)
	if x.again > 0 {
		x.again--
		due = true
	}
	return x.key, due
}

func (t *teller) end() {
	for address, x := range t.told {
		if !x.seen {
			delete(t.told, address)
			delete(t.byKey, x.key)
			t.changed = true
		}
	}
}

// members returns the keys of the endpoints, if they are others than last time.
func (t *teller) members() (keys []uint64, changed bool) {
	if !t.changed {
		return nil, false
	}
	t.changed = false
	return slices.Collect(maps.Keys(t.byKey)), true
}

// round returns the messages of one round: one at least, which says that the sender
// lives.
func (t *teller) round(now time.Duration, fleet Fleet) []merge.Message {
	all := t.sequence == 0 || now-t.allAt >= tellAllEvery
	if all {
		t.allAt = now
	}
	var list []merge.Endpoint
	t.begin()
	fleet.Endpoints(func(address string, outstanding int64, given time.Duration) {
		if key, due := t.due(address, outstanding, given, all); due {
			list = append(list, merge.Endpoint{Key: key, Outstanding: outstanding, Given: given.Microseconds()})
		}
	})
	t.end()
	var messages []merge.Message
	for {
		n := min(len(list), perMessage)
		messages = append(messages, t.next(merge.Message{Endpoints: list[:n]}))
		if list = list[n:]; len(list) == 0 {
			return append(messages, t.placed(fleet)...)
		}
	}
}

// placed returns the messages of what was sent where.
func (t *teller) placed(fleet Fleet) (messages []merge.Message) {
	var list []merge.Placement
	levels := 0
	flush := func() {
		if len(list) > 0 {
			messages = append(messages, t.next(merge.Message{Placements: list}))
		}
		list, levels = nil, 0
	}
	fleet.Placed(func(address string, all []uint64) {
		key, is := t.key(address)
		if !is || len(all) > levelsPerMessage {
			return
		}
		// Each takes the room of three levels besides its own.
		if levels += len(all) + 3; levels > levelsPerMessage {
			flush()
			levels = len(all) + 3
		}
		list = append(list, merge.Placement{Key: key, Levels: slices.Clone(all)})
	})
	flush()
	return messages
}

// next is the sender's next message.
func (t *teller) next(m merge.Message) merge.Message {
	t.sequence++
	m.Router, m.Sequence = t.router, t.sequence
	return m
}
