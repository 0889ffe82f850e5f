package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
)

// routerOf returns a router with endpoints 10.0.0.1:80, ...
func routerOf(n int, policy route.Policy) (*route.Router, func() []view.Endpoint) {
	var list []fleet.Endpoint
	for i := range n {
		list = append(list, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
	}
	set, _ := fleet.NewSet(list)
	r := route.NewRouter(policy)
	r.SetMembership(set)
	return r, func() (members []view.Endpoint) {
		for _, e := range set.Endpoints() {
			members = append(members, view.Endpoint{Address: e.Address, State: e.State.String(), Weight: e.Weight})
		}
		return members
	}
}

// The table has what was counted beside what the membership says.
func TestFleet(t *testing.T) {
	router, members := routerOf(4, route.Policy{Strategy: route.PrefixAware, PrefixLength: 2048, ConcurrencyThreshold: 8})
	s := New(start())
	for i := range 100 { // three of four go to one endpoint
		address := "10.0.0.1:80"
		if i%4 == 0 {
			address = fmt.Sprintf("10.0.0.%d:80", 2+i/4%3)
		}
		d := decision(address, route.Home)
		d.HomeCount, d.Warm, d.Key = 0, 0, uint64(i%2)
		if i >= 50 {
			d.Reason = route.Overflow
		}
		s.Decided(record(time.Duration(i)*time.Second/10, d))
	}
	s.hear("10.0.0.1:80", 10, heard{tokens: tokens{100, 80}})
	pools, warnings := s.Fleet([]Pool{{Name: "chat", Router: router, Members: members}, {Router: router, Members: members}}, start().Add(11*time.Second))
	if len(pools) != 2 || pools[0].Name != "chat" || pools[0].Requests != 0 || pools[0].Overflow != 0 {
		t.Errorf("a pool without requests is %+v", pools[0])
	}
	p := pools[1]
	if p.Name != "default" || p.PrefixLength != "2048" || p.ConcurrencyThreshold != "8" || p.Requests != 100 || p.Overflow != 0.5 || p.Expected != nil || *p.Actual != 0.8 {
		t.Errorf("the pool is %+v", p)
	}
	if m := p.Members[0]; m.Share != 0.75 || m.Bound != 8 || m.Requests != 75 || *m.Actual != 0.8 || m.Expected != nil || p.Members[1].Actual != nil {
		t.Errorf("the first endpoint is %+v", m)
	}
	if len(p.Hot) != 2 || p.Hot[0].Share != 0.5 || p.Hot[0].Depth != 1000 || len(p.Hot[0].Holders) < 2 {
		t.Errorf("hot are %+v", p.Hot)
	}
	if len(warnings) != 2 || warnings[0].Kind != "skew" || !strings.Contains(warnings[0].Text, "10.0.0.1:80 had 3.0 times") ||
		!strings.Contains(warnings[0].Advice, "prefixLength: auto") || warnings[1].Kind != "overflow" ||
		warnings[0].Pool != "default" || warnings[1].Pool != "default" {
		t.Errorf("warned of %+v", warnings)
	}
}

// crowd is a store with a pool of n endpoints that all had a request and an answer that
// was looked at.
func crowd(n int) (*Store, Pool) {
	router, members := routerOf(n, route.Policy{})
	s := New(start())
	for _, m := range members() {
		s.Decided(record(time.Second, decision(m.Address, route.Home)))
		s.hear(m.Address, 1, heard{tokens{100, 80}, time.Second, extproc.CacheWarm})
	}
	return s, Pool{Router: router, Members: members}
}

// A fleet that is read in pieces, so that requests need not wait for all of it, is whole.
func TestLargeFleet(t *testing.T) {
	for _, n := range []int{0, filledAtOnce - 1, filledAtOnce, 2*filledAtOnce + 1} {
		s, pool := crowd(n)
		pools, _ := s.Fleet([]Pool{pool}, start().Add(2*time.Second))
		if p := pools[0]; len(p.Members) != n || p.Requests != int64(n) || n > 0 && (*p.Actual != 0.8 || *p.Expected != 0.9) {
			t.Errorf("of %d endpoints the pool has %d requests, hits %v, expected %v", n, p.Requests, p.Actual, p.Expected)
		}
		for _, m := range pools[0].Members {
			if m.Requests != 1 || m.Share != 1/float64(n) || *m.Actual != 0.8 || m.FirstTokenWarm != 1 {
				t.Fatalf("of %d endpoints one is %+v", n, m)
			}
		}
	}
}

// BenchmarkFill is what a request waits for at most while the fleet is read, however
// large it is.
func BenchmarkFill(b *testing.B) {
	s, pool := crowd(5000)
	members := pool.Members()
	b.ReportAllocs()
	for b.Loop() {
		s.fill("", members[:filledAtOnce], nil, 2)
	}
}

// A skew is one that chance does not explain, and each policy has its own advice.
func TestSkew(t *testing.T) {
	pool := func(requests ...int64) *view.Pool {
		p := &view.Pool{Name: "p"}
		for _, n := range requests {
			p.Members = append(p.Members, view.Endpoint{Address: fmt.Sprint(len(p.Members)), Weight: 1, Bound: 5, Requests: n})
		}
		return p
	}
	weighted, drained := pool(300, 100, 100), pool(100, 100, 900)
	weighted.Members[0].Weight = 3
	drained.Members[2].Bound = 0
	for _, c := range []struct {
		name   string
		pool   *view.Pool
		policy route.Policy
		want   string
	}{
		{"even", pool(100, 110, 95), route.Policy{}, ""},
		{"few requests", pool(5, 1, 1), route.Policy{}, ""},
		{"none", pool(0, 0), route.Policy{}, ""},
		{"one endpoint", pool(1000), route.Policy{}, ""},
		{"not quite", pool(159, 70, 71), route.Policy{}, ""},
		{"weights", weighted, route.Policy{}, ""},
		{"one that is not chosen", drained, route.Policy{}, ""},
		{"fixed length", pool(400, 50, 50), route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024}, "prefixLength: auto"},
		{"fixed threshold", pool(400, 50, 50), route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength, ConcurrencyThreshold: 64}, "concurrencyThreshold: auto"},
		{"auto", pool(400, 50, 50), route.Policy{Strategy: route.KVAware, PrefixLength: route.AutoPrefixLength}, "hot prefixes"},
		{"least outstanding", pool(400, 50, 50), route.Policy{Strategy: route.LeastOutstandingRequests}, "faster"},
		{"random", pool(400, 50, 50), route.Policy{}, "weights"},
	} {
		got := skewed(c.pool, c.policy)
		if (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0].Advice, c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}

// Each reason has a sentence of its own with the endpoint in it.
func TestSentences(t *testing.T) {
	seen := make(map[string]route.Reason)
	for _, reason := range route.Reasons() {
		for _, strategy := range []route.Strategy{route.PrefixAware, route.KVAware} {
			d := decision("10.0.0.7:80", reason)
			d.Strategy = strategy
			got := Sentence(&d)
			if other, ok := seen[got]; ok && other != reason || !strings.HasSuffix(got, ".") || strings.Contains(got, "  ") {
				t.Errorf("%v: %q", reason, got)
			}
			seen[got] = reason
			if reason != route.NoEndpoints && reason != route.Undecided && !strings.Contains(got, "10.0.0.7:80") {
				t.Errorf("%v does not name the endpoint: %q", reason, got)
			}
		}
	}
}
