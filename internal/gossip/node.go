package gossip

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

const (
	// applyEvery is how often what was heard is handed on; every second time, what
	// has changed here is told. So a count is at most 75 ms old where it counts, and
	// what the network takes.
	applyEvery = 25 * time.Millisecond
	tellEvery  = 2 * applyEvery
	// tellAllEvery is how often everything that is not idle is told.
	tellAllEvery = time.Second
	// joinEvery is how often those to begin with are asked for others again: parts
	// that were cut off from each other find together, and names have new addresses.
	// joinAloneEvery is the same while nobody is known.
	joinEvery      = 10 * time.Second
	joinAloneEvery = time.Second
	// leaveTimeout is how long the others may take to hear that this process ends.
	leaveTimeout = 300 * time.Millisecond
)

// Node is a process that takes part.
type Node struct {
	options Options
	list    *memberlist.Memberlist
	began   time.Time
	teller  teller
	// speaking is how many others were heard when that was last looked at.
	speaking int
	log      *lines

	mu    sync.Mutex
	peers *merge.Peers
	// news is what others have told of and that was not handed on yet, levels how many
	// there are in it.
	news   merge.News
	levels int
}

// Start opens the sockets and takes part from now on. [Node.Run] tells and hears.
func Start(o Options) (*Node, error) {
	n := &Node{options: o, began: time.Now(), peers: merge.New(), teller: newTeller(o.Router), log: &lines{to: o.Log}}
	config, err := n.config()
	if err != nil {
		return nil, err
	}
	if n.list, err = memberlist.Create(config); err != nil {
		return nil, fmt.Errorf("gossip: listen on %s: %w", o.Listen, err)
	}
	return n, nil
}

// config is memberlist's for this node.
func (n *Node) config() (*memberlist.Config, error) {
	o := n.options
	c := memberlist.DefaultLANConfig()
	listen, err := netip.ParseAddrPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("gossip: listen on %q: want ip:port", o.Listen)
	}
	c.Name = routerName(o.Router)
	c.BindAddr, c.BindPort = listen.Addr().String(), int(listen.Port())
	c.AdvertisePort = c.BindPort
	if o.Advertise != "" {
		to, err := netip.ParseAddrPort(o.Advertise)
		if err != nil {
			return nil, fmt.Errorf("gossip: advertise %q: want ip:port", o.Advertise)
		}
		c.AdvertiseAddr, c.AdvertisePort = to.Addr().String(), int(to.Port())
	}
	if len(o.Key) > 0 {
		c.SecretKey = o.Key
	}
	// A name is not taken over by a restart, which has another one.
	c.GossipToTheDeadTime = 10 * time.Second
	c.TCPTimeout = 2 * time.Second
	// The counts are as small compressed as they are.
	c.EnableCompression = false
	c.Delegate, c.Events = delegate{n}, events{n}
	c.Logger = log.New(n.log, "", 0)
	c.Transport = o.transport
	return c, nil
}

// routerName is what memberlist calls a router.
func routerName(router uint64) string { return fmt.Sprintf("%016x", router) }

// routerOf is the router of a name, 0 if it is none.
func routerOf(name string) uint64 {
	router, err := strconv.ParseUint(name, 16, 64)
	if err != nil || len(name) != 16 {
		return 0
	}
	return router
}

// Run tells the others and hands on what they tell, until ctx ends. Then it leaves.
func (n *Node) Run(ctx context.Context) error {
	var joining sync.WaitGroup
	joining.Go(func() { n.join(ctx) })
	ticker := time.NewTicker(applyEvery)
	defer ticker.Stop()
	for tick := 0; ; tick++ {
		select {
		case <-ctx.Done():
			joining.Wait()
			return n.leave()
		case <-ticker.C:
		}
		n.apply()
		if tick%2 == 0 {
			n.tell()
		}
	}
}

// leave says goodbye and closes the sockets. That nobody hears it is no error.
func (n *Node) leave() error {
	n.log.hush()
	n.send(n.teller.next(merge.Message{Leaving: true}))
	_ = n.list.Leave(leaveTimeout)
	return n.list.Shutdown()
}

// join asks those to begin with who there is, again and again.
func (n *Node) join(ctx context.Context) {
	if len(n.options.Join) == 0 {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		_, err := n.list.Join(n.options.Join)
		if err != nil && !failed { // once, not every second
			n.options.Log.Warn("gossip: none of the addresses to join answers; trying on", "join", n.options.Join, "error", err)
		}
		failed = err != nil
		wait := joinEvery
		if n.list.NumMembers() < 2 {
			wait = joinAloneEvery
		}
		timer.Reset(wait)
	}
}

func (n *Node) now() int64 { return int64(time.Since(n.began)) }

// Address is where the node hears others.
func (n *Node) Address() string { return n.list.LocalNode().Address() }

// Peer is another router.
type Peer struct {
	merge.Peer
	// Age is the time since it last told of its counts.
	Age time.Duration
}

// Peers returns the other routers that have told of their counts.
func (n *Node) Peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	var list []Peer
	for _, p := range n.peers.List(now) {
		list = append(list, Peer{Peer: p, Age: time.Duration(now - p.Heard)})
	}
	return list
}
