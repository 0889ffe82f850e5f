package xds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// remembered is how many generations back a content is still recognised.
const remembered = 128

// content identifies what an endpoint resource holds, as the protocol does.
type content struct{ service, version string }

// clients is what is known of every stream. What an Envoy uses is recorded as
// content, not as a generation: a membership that returns to an earlier one is
// not sent to an Envoy that never saw the one between.
type clients struct {
	obs Observer

	mu          sync.Mutex
	streams     map[int64]*client
	generations map[*Pool]map[content]uint64
	nacks       uint64
	lastNack    Nack
	changed     chan struct{} // closed and replaced when anything above changes
}

func newClients(obs Observer) *clients {
	return &clients{
		obs: obs, streams: make(map[int64]*client), generations: make(map[*Pool]map[content]uint64),
		changed: make(chan struct{}),
	}
}

// client is one stream.
type client struct {
	node       string
	connected  bool // its first request, which has the node, has come
	subscribed map[string]bool
	held       map[string]string            // service to version: in use
	refused    map[string]string            // service to version: the latest refused
	sent       map[string]map[string]string // nonce to services and versions: no answer yet
	names      int                          // how many resources were asked for, of all types
}

// expect records the content of a pool's generation before it can be sent.
func (c *clients) expect(p *Pool, generation uint64, assignments []*endpointv3.ClusterLoadAssignment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.generations[p]
	if known == nil {
		known = make(map[content]uint64)
		c.generations[p] = known
	}
	for _, a := range assignments {
		bytes, err := cache.MarshalResource(a)
		if err != nil {
			return fmt.Errorf("endpoints of %s: %w", a.GetClusterName(), err)
		}
		known[content{a.GetClusterName(), cache.HashResource(bytes)}] = generation
	}
	for k, g := range known {
		if g+remembered < generation {
			delete(known, k)
		}
	}
	c.wake()
	return nil
}

// wake lets every waiter look again. c.mu is held.
func (c *clients) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// newest returns the latest generation of a pool among the contents. c.mu is held.
func (c *clients) newest(p *Pool, contents map[string]string) (generation uint64) {
	for service, version := range contents {
		generation = max(generation, c.generations[p][content{service, version}])
	}
	return generation
}

// follows reports whether an Envoy has subscribed to a pool. c.mu is held.
func (c *clients) follows(cl *client, p *Pool) bool {
	for known := range c.generations[p] {
		if cl.subscribed[known.service] {
			return true
		}
	}
	return false
}

// concerns reports whether any of the contents is of a pool. c.mu is held.
func (c *clients) concerns(p *Pool, contents map[string]string) bool {
	for known := range c.generations[p] {
		if _, ok := contents[known.service]; ok {
			return true
		}
	}
	return false
}

// want reports whether any Envoy has subscribed to the service.
func (c *clients) want(service string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range c.streams {
		if cl.subscribed[service] {
			return true
		}
	}
	return false
}

// allWanted returns the services that Envoys have subscribed to, sorted.
func (c *clients) allWanted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]bool)
	for _, cl := range c.streams {
		maps.Copy(all, cl.subscribed)
	}
	return slices.Sorted(maps.Keys(all))
}

// settlement is the answer to whether all Envoys have a generation.
type settlement struct {
	behind, refused []string // nodes
	detail          string
	changed         <-chan struct{}
}

func (s settlement) refusal(generation uint64) error {
	if len(s.refused) == 0 {
		return nil
	}
	return fmt.Errorf("generation %d at %q: %w: %s", generation, s.refused, ErrRefused, s.detail)
}

func (c *clients) settled(p *Pool, generation uint64) settlement {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := settlement{changed: c.changed, detail: c.lastNack.Detail}
	for _, cl := range c.streams {
		switch {
		case !c.follows(cl, p):
		case c.newest(p, cl.held) >= generation && !c.overtaken(cl, p, generation):
		case c.newest(p, cl.refused) >= generation:
			s.refused = append(s.refused, cl.node)
		default:
			s.behind = append(s.behind, cl.node)
		}
	}
	slices.Sort(s.behind)
	slices.Sort(s.refused)
	return s
}

// joined reports whether any Envoy has subscribed to a pool, and what tells of
// changes.
func (c *clients) joined(p *Pool) (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range c.streams {
		if c.follows(cl, p) {
			return true, c.changed
		}
	}
	return false, c.changed
}

// overtaken reports whether an older content is on its way to an Envoy that
// already has the one that is asked for. c.mu is held.
func (c *clients) overtaken(cl *client, p *Pool, generation uint64) bool {
	for _, contents := range cl.sent {
		if c.concerns(p, contents) && c.newest(p, contents) < generation {
			return true
		}
	}
	return false
}

func (c *clients) status(p *Pool, generation uint64) Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Status{Generation: generation, Clients: []Client{}, Nacks: c.nacks, LastNack: c.lastNack}
	for _, cl := range c.streams {
		if cl.connected {
			st.Clients = append(st.Clients, Client{
				Node: cl.node, Subscribed: c.follows(cl, p),
				Acked: c.newest(p, cl.held), Refused: c.newest(p, cl.refused),
			})
		}
	}
	slices.SortFunc(st.Clients, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Acked, b.Acked))
	})
	return st
}
