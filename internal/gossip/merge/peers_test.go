package merge

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

const second = 1_000_000_000

func told(router, sequence uint64, endpoints ...Endpoint) Message {
	return Message{Router: router, Sequence: sequence, Endpoints: endpoints}
}

// What others have outstanding is the sum of what each told last, as long as it
// speaks and repeats it.
func TestSum(t *testing.T) {
	p := New()
	p.SetMembers([]uint64{1, 2})
	p.Hear(0, told(7, 1, Endpoint{1, 3, 0}, Endpoint{2, 1, 0}, Endpoint{99, 5, 0}))
	p.Hear(0, told(8, 1, Endpoint{1, 4, 0}))
	for _, c := range []struct {
		what string
		at   int64
		do   Message
		want map[uint64]int64
	}{
		{"two routers", 0, Message{}, map[uint64]int64{1: 7, 2: 1}},
		{"a late message", 1, told(7, 1, Endpoint{1, 50, 0}), map[uint64]int64{1: 7, 2: 1}},
		{"a change", 2, told(7, 2, Endpoint{1, 0, 0}), map[uint64]int64{1: 4, 2: 1}},
		{"one is silent", SilentAfter + 1, told(7, 3), map[uint64]int64{2: 1}},
		{"it speaks again", SilentAfter + 2, told(8, 2), map[uint64]int64{1: 4, 2: 1}},
		{"never repeated", unconfirmedAfter + 3, told(8, 3), map[uint64]int64{}},
		{"too many to believe", 3 * second, told(8, 4, Endpoint{1, MaxOutstanding + 5, 0}), map[uint64]int64{1: MaxOutstanding}},
		{"fewer than none", 3 * second, told(8, 5, Endpoint{1, -5, 0}), map[uint64]int64{}},
		{"a goodbye", 3 * second, Message{Router: 8, Sequence: 6, Leaving: true}, map[uint64]int64{}},
	} {
		if c.do.Router != 0 {
			p.Hear(c.at, c.do)
		}
		if got := p.Sum(c.at); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	if heard, all := p.Speaking(3 * second); heard != 0 || all != 1 {
		t.Errorf("%d of %d are heard: one said goodbye, one fell silent", heard, all)
	}
}

// Work is what has been added since the last word, whatever was lost between; a
// count that begins anew adds nothing.
func TestGiven(t *testing.T) {
	p := New()
	p.SetMembers([]uint64{1})
	for i, c := range []struct{ told, want int64 }{{100, 0}, {150, 50}, {150, 0}, {950, 800}, {20, 0}, {30, 10}, {1 << 60, maxGiven}} {
		news, ok := p.Hear(0, told(7, uint64(i+1), Endpoint{1, 0, c.told}))
		got := int64(0)
		for _, g := range news.Given {
			got += g.Work
		}
		if !ok || got != c.want {
			t.Errorf("word %d, %d: new is %d (%v), want %d", i, c.told, got, ok, c.want)
		}
	}
}

// Placements come through for members, up to a bound.
func TestPlacements(t *testing.T) {
	p := New()
	p.SetMembers([]uint64{1})
	m := Message{Router: 7, Sequence: 1, Placements: []Placement{{1, make([]uint64, 600)}, {2, make([]uint64, 10)}, {1, make([]uint64, 600)}}}
	if news, _ := p.Hear(0, m); len(news.Placements) != 1 {
		t.Errorf("%d placements, want the first", len(news.Placements))
	}
}

// However many routers there are said to be, MaxPeers are listened to; who has
// fallen silent makes room.
func TestPeersAreBounded(t *testing.T) {
	p := New()
	for i := range uint64(3 * MaxPeers) {
		p.Hear(0, told(i+1, 1))
	}
	if n := len(p.peers); n != MaxPeers {
		t.Errorf("%d peers, want %d", n, MaxPeers)
	}
	if _, ok := p.Hear(SilentAfter+1, told(9999, 1)); !ok || len(p.peers) != MaxPeers {
		t.Errorf("a new one instead of a silent one: %v, %d peers", ok, len(p.peers))
	}
	if _, ok := p.Hear(0, told(0, 1)); ok {
		t.Error("router 0 is none")
	}
}

// twin is the same picture, kept as a list of all that was ever told.
type twin struct {
	members map[uint64]bool
	words   []word
}

type word struct {
	at      int64
	message Message
}

// sum looks for the last valid word of each router about each endpoint.
func (w *twin) sum(now int64) map[uint64]int64 {
	heard, sequence := map[uint64]int64{}, map[uint64]uint64{}
	last := map[[2]uint64]word{}
	for _, x := range w.words {
		m := x.message
		if _, known := heard[m.Router]; known && m.Sequence <= sequence[m.Router] {
			continue
		}
		if m.Leaving {
			delete(heard, m.Router)
			maps.DeleteFunc(last, func(k [2]uint64, _ word) bool { return k[0] == m.Router })
			continue
		}
		heard[m.Router], sequence[m.Router] = x.at, m.Sequence
		for _, e := range m.Endpoints {
			last[[2]uint64{m.Router, e.Key}] = word{x.at, told(0, 0, e)}
		}
	}
	sum := map[uint64]int64{}
	for k, x := range last {
		n := min(max(x.message.Endpoints[0].Outstanding, 0), MaxOutstanding)
		if n > 0 && w.members[k[1]] && now-heard[k[0]] <= SilentAfter && now-x.at <= unconfirmedAfter {
			sum[k[1]] += n
		}
	}
	return sum
}

func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, w := New(), &twin{members: map[uint64]bool{1: true, 2: true, 3: true}}
		p.SetMembers([]uint64{1, 2, 3})
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, second).Draw(t, "later")
			m := Message{
				Router: rapid.Uint64Range(1, 4).Draw(t, "router"), Sequence: rapid.Uint64Range(1, 40).Draw(t, "sequence"),
				Leaving: rapid.IntRange(0, 20).Draw(t, "leaving") == 0,
			}
			for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
				m.Endpoints = append(m.Endpoints, Endpoint{rapid.Uint64Range(1, 5).Draw(t, "key"), rapid.Int64Range(-2, 9).Draw(t, "n"), 0})
			}
			p.Hear(now, m)
			w.words = append(w.words, word{now, m})
			if got, want := p.Sum(now), w.sum(now); !maps.Equal(got, want) {
				t.Fatalf("at %d: %v, the twin has %v", now, got, want)
			}
		}
	})
}

// Endpoints that are members no more are forgotten.
func TestMembersGo(t *testing.T) {
	p := New()
	p.SetMembers([]uint64{1, 2})
	p.Hear(0, told(7, 1, Endpoint{1, 3, 0}, Endpoint{2, 1, 0}))
	p.SetMembers([]uint64{2})
	if n := len(p.peers[7].endpoints); n != 1 {
		t.Errorf("%d endpoints remembered, want 1", n)
	}
	p.SetMembers([]uint64{1, 2})
	if got := p.Sum(0); got[1] != 0 || got[2] != 1 {
		t.Errorf("came back with %v", got)
	}
	if l := p.List(0); len(l) != 1 || l[0].Router != 7 || l[0].Silent || l[0].Outstanding != 1 {
		t.Errorf("list %+v", l)
	}
}

// The key of an endpoint is for ever: routers of different versions have to agree.
func TestKeyIsPinned(t *testing.T) {
	if got := Key("10.0.0.1:8000"); got != 0x5139bb638d151dbb {
		t.Errorf("%#x, want 0x5139bb638d151dbb", got)
	}
}
