package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/gossip/merge"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
)

// own is warmpath's router.
type own struct {
	router *route.Router
	policy route.Policy
	tokens int // of a fixed prefix length
	byName map[string]int
	slots  map[*Job]*load.Reservation
	peers  *merge.Peers
	byKey  map[uint64]string
}

// NewOwn routes as warmpath does.
func NewOwn(policy route.Policy) Maker {
	return func(_, routers int) Policy {
		p := &own{
			router: route.NewRouter(policy), policy: policy, tokens: policy.PrefixLength / 4,
			byName: make(map[string]int), slots: make(map[*Job]*load.Reservation), peers: merge.New(),
		}
		p.router.SetRouters(routers, false)
		return p
	}
}

// Members implements Policy.
func (p *own) Members(_ time.Duration, members []Member) {
	endpoints := make([]fleet.Endpoint, len(members))
	for i, m := range members {
		endpoints[i] = fleet.Endpoint{Address: m.Address, Weight: uint32(m.Weight)}
		p.byName[endpoints[i].Address] = m.Replica
	}
	p.byKey = make(map[uint64]string)
	for _, e := range endpoints {
		p.byKey[merge.Key(e.Address)] = e.Address
	}
	p.peers.SetMembers(slices.Collect(maps.Keys(p.byKey)))
	set, _ := fleet.NewSet(endpoints)
	p.router.SetMembership(set)
}

// Pick implements Policy.
func (p *own) Pick(now time.Duration, q *Query) Choice {
	r := route.Request{Key: q.Job.Whole, Keyed: true, Random: q.Random, Now: int64(now)}
	if p.policy.PrefixLength == route.AutoPrefixLength || p.policy.Strategy == route.KVAware {
		r.Levels = q.Job.Chunks[:min(len(q.Job.Chunks), 512)]
		r.Chars = q.Job.Tokens * 4
	} else {
		r.Key = q.Job.key(p.tokens)
	}
	d, slot := p.router.Table().Pick(r)
	p.slots[q.Job] = &slot
	c := Choice{Replica: p.byName[d.Chosen], Overflow: d.Reason == route.Overflow || d.Reason == route.Saturated}
	if homes := d.Homes(); len(homes) > 0 {
		c.Key, c.Home, c.Keyed = d.Key, p.byName[homes[0]], d.HomeCount <= 1
	}
	return c
}

// Wanted implements Demanding.
func (p *own) Wanted() float64 { return p.router.Demand().Wanted }

// First implements Policy.
func (p *own) First(time.Duration, int, *Job, time.Duration) {}

// Done implements Policy.
func (p *own) Done(_ time.Duration, _ int, j *Job) {
	p.slots[j].Release()
	delete(p.slots, j)
}

// Begin implements Sharer.
func (p *own) Begin(routers int) {
	p.router.SetRouters(routers, true)
	p.router.Share(true)
}

// Share implements Sharer.
func (p *own) Share() (list []merge.Endpoint, placements []merge.Placement) {
	p.router.Given(func(address string, work int64) {
		c, _ := p.router.Loads().Lookup(address)
		list = append(list, merge.Endpoint{Key: merge.Key(address), Outstanding: c.Outstanding(), Given: work / 1000})
	})
	p.router.Placed(func(address string, levels []uint64) {
		placements = append(placements, merge.Placement{Key: merge.Key(address), Levels: slices.Clone(levels)})
	})
	return list, placements
}

// Hear implements Sharer.
func (p *own) Hear(now time.Duration, m merge.Message) {
	news, _ := p.peers.Hear(int64(now), m)
	for _, g := range news.Given {
		p.router.GiveElsewhere(p.byKey[g.Key], int64(now), g.Work*1000)
	}
	for _, x := range news.Placements {
		p.router.PlaceElsewhere(p.byKey[x.Key], x.Levels)
	}
}

// Heard implements Sharer.
func (p *own) Heard(now time.Duration) {
	sum := p.peers.Sum(int64(now))
	p.router.Loads().SetOthers(func(address string) int64 { return sum[merge.Key(address)] })
}
