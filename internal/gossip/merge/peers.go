package merge

// Peers is what the other routers have told. Times are in ns from any beginning. It
// belongs to one goroutine.
type Peers struct {
	members map[uint64]struct{}
	peers   map[uint64]*peer
}

type peer struct {
	heard     int64 // when it last spoke
	sequence  uint64
	endpoints map[uint64]*entry // members only
}

type entry struct {
	outstanding int64
	at          int64 // when it was told
	given       int64
}

// New returns a picture without members or peers.
func New() *Peers {
	return &Peers{members: make(map[uint64]struct{}), peers: make(map[uint64]*peer)}
}

// SetMembers says which endpoints there are; of others nothing is heard, and what
// was is forgotten.
func (p *Peers) SetMembers(keys []uint64) {
	p.members = make(map[uint64]struct{}, len(keys))
	for _, k := range keys {
		p.members[k] = struct{}{}
	}
	for _, one := range p.peers {
		for k := range one.endpoints {
			if _, is := p.members[k]; !is {
				delete(one.endpoints, k)
			}
		}
	}
}

// Given is work that another router has sent to an endpoint, in µs.
type Given struct {
	Key  uint64
	Work int64
}

// News is what a message says that is not told again.
type News struct {
	Given      []Given
	Placements []Placement
}

// Hear takes a message in. It returns what the sender has sent where since it last
// told, and whether the message was of use: one that is older than another, or from
// more routers than are listened to, is not. The first word about an endpoint is
// where the count of its work begins.
func (p *Peers) Hear(now int64, m Message) (news News, ok bool) {
	from := p.peers[m.Router]
	if from == nil {
		if m.Router == 0 || !p.room(now) {
			return News{}, false
		}
		from = &peer{endpoints: make(map[uint64]*entry)}
		p.peers[m.Router] = from
	} else if m.Sequence <= from.sequence {
		return News{}, false
	}
	if m.Leaving {
		delete(p.peers, m.Router)
		return News{}, true
	}
	from.heard, from.sequence = now, m.Sequence
	for _, e := range m.Endpoints[:min(len(m.Endpoints), MaxEndpoints)] {
		if _, is := p.members[e.Key]; !is {
			continue
		}
		if work := from.hear(now, e); work > 0 {
			news.Given = append(news.Given, Given{e.Key, work})
		}
	}
	levels := 0
	for _, x := range m.Placements {
		if levels += len(x.Levels); levels > MaxLevels {
			break
		}
		if _, is := p.members[x.Key]; is {
			news.Placements = append(news.Placements, x)
		}
	}
	return news, true
}

// hear takes in what is told of one endpoint, and returns the work that is new.
func (p *peer) hear(now int64, e Endpoint) (work int64) {
	known := p.endpoints[e.Key]
	if known == nil {
		known = &entry{given: e.Given}
		p.endpoints[e.Key] = known
	}
	// What has shrunk was begun anew: the sender has forgotten the endpoint between.
	if e.Given > known.given {
		work = min(e.Given-max(known.given, 0), maxGiven)
	}
	known.outstanding, known.at, known.given = min(max(e.Outstanding, 0), MaxOutstanding), now, e.Given
	return work
}

// room makes room for one more, in the place of who has been silent longest. It
// reports false if nobody is silent.
func (p *Peers) room(now int64) bool {
	var longest uint64
	for id, one := range p.peers {
		switch {
		case now-one.heard > forgetAfter:
			delete(p.peers, id)
		case one.silent(now) && (longest == 0 || one.heard < p.peers[longest].heard):
			longest = id
		}
	}
	if len(p.peers) >= MaxPeers && longest != 0 {
		delete(p.peers, longest)
	}
	return len(p.peers) < MaxPeers
}

// Sum returns how many requests the others have outstanding at each endpoint, the
// idle ones left out.
func (p *Peers) Sum(now int64) map[uint64]int64 {
	sum := make(map[uint64]int64)
	for _, one := range p.peers {
		if one.silent(now) {
			continue
		}
		for key, e := range one.endpoints {
			if e.outstanding > 0 && now-e.at <= unconfirmedAfter {
				sum[key] += e.outstanding
			}
		}
	}
	return sum
}

func (p *peer) silent(now int64) bool { return now-p.heard > SilentAfter }

// Peer is another router.
type Peer struct {
	Router uint64
	// Heard is when it last spoke, Silent whether that is so long ago that its counts
	// do not count.
	Heard  int64
	Silent bool
	// Outstanding is how many requests it has told of, at all endpoints.
	Outstanding int64
}

// List returns the other routers that are remembered, in no order.
func (p *Peers) List(now int64) (list []Peer) {
	for id, one := range p.peers {
		v := Peer{Router: id, Heard: one.heard, Silent: one.silent(now)}
		for _, e := range one.endpoints {
			if now-e.at <= unconfirmedAfter {
				v.Outstanding += e.outstanding
			}
		}
		list = append(list, v)
	}
	return list
}

// Speaking returns how many others are heard, and how many there are if those are
// still there who have fallen silent without a goodbye.
func (p *Peers) Speaking(now int64) (heard, all int) {
	for _, one := range p.peers {
		if now-one.heard > forgetAfter {
			continue
		}
		all++
		if !one.silent(now) {
			heard++
		}
	}
	return heard, all
}
