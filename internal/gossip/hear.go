package gossip

import (
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

// maxNews bounds what waits to be handed on: entries of work, and levels.
const maxNews = 1 << 16

// hear takes in a message of another router.
func (n *Node) hear(data []byte) {
	m, err := decode(data)
	if err != nil {
		n.options.Observer.failed()
		n.options.Log.Debug("gossip: a message is ignored", "error", err)
		return
	}
	n.options.Observer.received()
	if m.Router == n.options.Router {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	news, ok := n.peers.Hear(n.now(), m)
	if !ok {
		return
	}
	if len(n.news.Given)+len(news.Given) <= maxNews {
		n.news.Given = append(n.news.Given, news.Given...)
	}
	for _, p := range news.Placements {
		if n.levels += len(p.Levels); n.levels > maxNews {
			return
		}
		n.news.Placements = append(n.news.Placements, p)
	}
}

// apply hands on what was heard.
func (n *Node) apply() {
	members, changed := n.teller.members()
	n.mu.Lock()
	now := n.now()
	if changed {
		n.peers.SetMembers(members)
	}
	sum := n.peers.Sum(now)
	news := n.news
	n.news, n.levels = merge.News{}, 0
	speaking, all := n.peers.Speaking(now)
	n.mu.Unlock()
	if speaking != n.speaking {
		n.options.Log.Info("gossip: other routers are heard", "now", speaking, "before", n.speaking)
		n.speaking = speaking
	}
	n.options.Fleet.SetOthers(func(address string) int64 {
		if key, is := n.teller.key(address); is {
			return sum[key]
		}
		return 0
	})
	for _, p := range news.Placements {
		if address, is := n.teller.byKey[p.Key]; is {
			n.options.Fleet.PlaceElsewhere(address, p.Levels)
		}
	}
	for _, g := range news.Given {
		if address, is := n.teller.byKey[g.Key]; is {
			n.options.Fleet.GiveElsewhere(address, time.Duration(g.Work)*time.Microsecond)
		}
	}
	n.options.Fleet.SetRouters(1+all, speaking > 0)
}

// tell sends what there is to tell to every other router.
func (n *Node) tell() {
	for _, m := range n.teller.round(time.Since(n.began), n.options.Fleet) {
		n.send(m)
	}
}

// send sends a message to every other router.
func (n *Node) send(m merge.Message) {
	data, err := encode(m, time.Since(n.began))
	if err != nil {
		n.options.Observer.failed()
		return
	}
	for _, to := range n.list.Members() {
		if to.Name == routerName(n.options.Router) {
			continue
		}
		if err := n.list.SendBestEffort(to, data); err != nil {
			n.options.Observer.failed()
			n.options.Log.Debug("gossip: a message was not sent", "router", routerName(routerOf(to.Name)), "error", err)
			continue
		}
		n.options.Observer.sent()
	}
}

// delegate implements memberlist.Delegate. Only messages to one are used.
type delegate struct{ n *Node }

// NodeMeta implements memberlist.Delegate.
func (delegate) NodeMeta(int) []byte { return nil }

// NotifyMsg implements memberlist.Delegate.
func (d delegate) NotifyMsg(data []byte) { d.n.hear(data) }

// GetBroadcasts implements memberlist.Delegate.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (delegate) MergeRemoteState([]byte, bool) {}

// events implements memberlist.EventDelegate.
type events struct{ n *Node }

// NotifyJoin implements memberlist.EventDelegate.
func (e events) NotifyJoin(m *memberlist.Node) {
	if m.Name != routerName(e.n.options.Router) {
		e.n.options.Log.Info("gossip: a router was found", "router", routerName(routerOf(m.Name)), "address", m.Address())
	}
}

// NotifyLeave implements memberlist.EventDelegate.
func (e events) NotifyLeave(m *memberlist.Node) {
	if m.Name == routerName(e.n.options.Router) {
		return
	}
	e.n.options.Log.Info("gossip: a router has gone", "router", routerName(routerOf(m.Name)), "address", m.Address())
}

// NotifyUpdate implements memberlist.EventDelegate.
func (events) NotifyUpdate(*memberlist.Node) {}
