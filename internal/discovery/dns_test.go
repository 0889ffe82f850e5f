package discovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/testenv/nameserver"
)

// resolver answers what the test says.
type resolver struct {
	addresses map[string][]netip.Addr
	records   []*net.SRV
	err       error
	// script has what to do before each answer.
	script []func()
}

var notFound = &net.DNSError{Err: "no such host", Name: "gpus", IsNotFound: true}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if len(r.script) > 0 {
		r.script[0]()
		r.script = r.script[1:]
	}
	if r.err == nil && len(r.addresses[host]) == 0 {
		return nil, notFound
	}
	return r.addresses[host], r.err
}

func (r *resolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", r.records, r.err
}

func ips(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

// The life of a name: what is reported, and when.
func TestDNSRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := &resolver{}
		say := func(addresses ...string) func() {
			return func() { r.err, r.addresses = nil, map[string][]netip.Addr{"gpus": ips(addresses...)} }
		}
		fail := func(text string) func() {
			return func() { r.err = &net.DNSError{Err: text, Name: "gpus", Server: "10.0.0.53:53", IsTemporary: true} }
		}
		r.script = []func(){
			fail("server misbehaving"),
			say("10.0.0.1", "10.0.0.2"),
			say("10.0.0.2", "10.0.0.1"), // shuffled: no news
			say("10.0.0.2", "::ffff:10.0.0.1"),
			fail("read udp 127.0.0.1:40001->10.0.0.53:53: i/o timeout"),
			fail("read udp 127.0.0.1:40002->10.0.0.53:53: i/o timeout"),
			say(), // no such name
			say("10.0.0.2", "10.0.0.1"),
			say("0.0.0.0"),
			say("10.0.0.2", "0.0.0.0", "224.0.0.1"),
			say("224.0.0.1", "10.0.0.2", "0.0.0.0"),
			say("10.0.0.2", "fd00::2"),
		}
		source := &DNS{DNS: config.DNS{Name: "gpus", Type: config.DNSAddress, Port: 80, Interval: time.Second}, Resolver: r}
		var got []string
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(r.script))*time.Second-time.Millisecond)
		defer cancel()
		if err := source.Run(ctx, func(u Update) {
			got = append(got, fmt.Sprintf("%v %s", u.At.Sub(start), strings.ReplaceAll(strings.TrimSpace(describe(u)), "\n", "; ")))
			if good := u.LastGood; !good.IsZero() {
				got[len(got)-1] += fmt.Sprintf(" (good %v)", good.Sub(start))
			}
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		const both = "10.0.0.1:80 weight=1 healthy; 10.0.0.2:80 weight=1 healthy"
		want := []string{
			`0s empty; error: dns: lookup gpus on 10.0.0.53:53: server misbehaving; no endpoints are known yet`,
			`1s ` + both + ` (good 1s)`,
			`4s ` + both + `; error: dns: lookup gpus on 10.0.0.53:53: read udp 10.0.0.53:53: i/o timeout; the last good answer stays (good 3s)`,
			`5s ` + both + `; error: dns: lookup gpus on 10.0.0.53:53: read udp 10.0.0.53:53: i/o timeout; the last good answer stays (good 3s)`,
			`6s ` + both + `; error: dns: "gpus": no such name, or no records of that type; the last good answer stays (good 3s)`,
			`7s ` + both + ` (good 7s)`,
			`8s ` + both + `; error: dns: "gpus": the answer has no endpoint that can be used; the last good answer stays; problem: dns: address "0.0.0.0:80": not the address of one host (good 7s)`,
			`9s 10.0.0.2:80 weight=1 healthy; problem: dns: address "0.0.0.0:80": not the address of one host; problem: dns: address "224.0.0.1:80": not the address of one host (good 9s)`,
			`11s 10.0.0.2:80 weight=1 healthy; [fd00::2]:80 weight=1 healthy (good 11s)`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestServices(t *testing.T) {
	addresses := map[string][]netip.Addr{
		"a.": ips("10.0.0.1"), "b.": ips("10.0.0.2"), "c.": ips("10.0.0.3"), "both.": ips("10.0.0.4", "fd00::4"), "bad.": ips("0.0.0.0"),
	}
	for _, c := range []struct {
		name    string
		records []*net.SRV
		want    string
	}{
		{
			"ports, priorities and weights",
			[]*net.SRV{{Target: "a.", Port: 1, Priority: 10, Weight: 60}, {Target: "b.", Port: 2, Priority: 20, Weight: 20}, {Target: "c.", Port: 3, Priority: 500, Weight: 40}},
			"10.0.0.1:1 weight=3 priority=0; 10.0.0.2:2 weight=1 priority=1; 10.0.0.3:3 weight=2 priority=2",
		},
		{"equal weights", []*net.SRV{{Target: "a.", Port: 1, Weight: 33}, {Target: "b.", Port: 1, Weight: 33}}, "10.0.0.1:1 weight=1 priority=0; 10.0.0.2:1 weight=1 priority=0"},
		{"no weights", []*net.SRV{{Target: "a.", Port: 1}, {Target: "b.", Port: 1}}, "10.0.0.1:1 weight=1 priority=0; 10.0.0.2:1 weight=1 priority=0"},
		{
			"the greatest weights",
			[]*net.SRV{{Target: "a.", Port: 1, Weight: 65535}, {Target: "b.", Port: 1, Weight: 32768}, {Target: "c.", Port: 1}},
			"10.0.0.1:1 weight=1000 priority=0; 10.0.0.2:1 weight=500 priority=0; 10.0.0.3:1 weight=1 priority=0",
		},
		{"one address twice", []*net.SRV{{Target: "a.", Port: 1, Priority: 2, Weight: 9}, {Target: "a.", Port: 1, Priority: 1, Weight: 3}, {Target: "a.", Port: 1, Priority: 1, Weight: 6}}, "10.0.0.1:1 weight=2 priority=0"},
		{"two addresses of a target", []*net.SRV{{Target: "both.", Port: 1, Weight: 5}}, "10.0.0.4:1 weight=1 priority=0; [fd00::4]:1 weight=1 priority=0"},
		{"no such service", []*net.SRV{{Target: ".", Port: 1}}, "error: the answer has no endpoint that can be used"},
		{"a target without addresses", []*net.SRV{{Target: "gone.", Port: 1}, {Target: "a.", Port: 1}}, `10.0.0.1:1 weight=1 priority=0; problem: "gone." has no address, its SRV record is left out`},
		{
			"port 0 and a bad address",
			[]*net.SRV{{Target: "b.", Port: 0}, {Target: "bad.", Port: 1}, {Target: "a.", Port: 1}},
			`10.0.0.1:1 weight=1 priority=0; problem: address "0.0.0.0:1": not the address of one host; problem: address "10.0.0.2:0": port 0 cannot be connected to, want 1..65535`,
		},
	} {
		for range 5 {
			rand.Shuffle(len(c.records), func(i, j int) { c.records[i], c.records[j] = c.records[j], c.records[i] })
			d := &DNS{DNS: config.DNS{Name: "gpus", Type: config.DNSService}}
			u := answered(Update{}, "gpus", d.ask(t.Context(), &resolver{addresses: addresses, records: c.records}))
			if got := describeService(u); got != c.want {
				t.Fatalf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
			}
		}
	}
}

func describeService(u Update) string {
	var parts []string
	for _, e := range u.Set.Endpoints() {
		parts = append(parts, fmt.Sprintf("%s weight=%d priority=%d", e.Address, e.Weight, e.Priority))
	}
	if u.Err != nil {
		text := strings.TrimPrefix(u.Err.Error(), `dns: "gpus": `)
		parts = append(parts, "error: "+strings.TrimSuffix(text, "; no endpoints are known yet"))
	}
	for _, p := range u.Problems {
		parts = append(parts, "problem: "+strings.TrimPrefix(p.String(), "dns: "))
	}
	return strings.Join(parts, "; ")
}

// The order of an answer never matters, whatever its records, and what comes out
// is in bounds.
func TestServicesInAnyOrder(t *testing.T) {
	record := rapid.Custom(func(t *rapid.T) *net.SRV {
		return &net.SRV{
			Target: rapid.SampledFrom([]string{"a.", "b.", "c.", "none."}).Draw(t, "target"), Port: rapid.Uint16Range(1, 3).Draw(t, "port"),
			Priority: rapid.Uint16().Draw(t, "priority"), Weight: rapid.Uint16().Draw(t, "weight"),
		}
	})
	addresses := map[string][]netip.Addr{"a.": ips("10.0.0.1", "10.0.0.2"), "b.": ips("10.0.0.2"), "c.": ips("fd00::3")}
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(record, 1, 30).Draw(t, "records")
		one := answered(Update{}, "gpus", service(records, addresses))
		other := answered(Update{}, "gpus", service(rapid.Permutation(records).Draw(t, "order"), addresses))
		if differs(one, other) {
			t.Fatalf("got %s, in another order %s", describeService(one), describeService(other))
		}
		for _, e := range one.Set.Endpoints() {
			if e.Weight < fleet.MinWeight || e.Weight > fleet.MaxWeight || e.Priority > fleet.MaxPriority {
				t.Fatalf("endpoint %+v", e)
			}
		}
	})
}

func TestDNSAnswersAreBounded(t *testing.T) {
	many := make([]netip.Addr, MaxEndpoints+1)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	last := Update{Set: setOf("10.0.0.1:80")}
	d := &DNS{DNS: config.DNS{Name: "gpus", Type: config.DNSAddress, Port: 80}}
	u := answered(last, "gpus", d.ask(t.Context(), &resolver{addresses: map[string][]netip.Addr{"gpus": many}}))
	if !u.Set.Equal(last.Set) || u.Err == nil || !strings.Contains(u.Err.Error(), "10001 endpoints, want at most 10000") {
		t.Errorf("%d endpoints, %v", u.Set.Len(), u.Err)
	}
	d.Type = config.DNSService
	r := &resolver{addresses: map[string][]netip.Addr{"a.": many[:6000], "b.": many[4000:]}, records: []*net.SRV{{Target: "a.", Port: 1}, {Target: "b.", Port: 1}}}
	if u = answered(last, "gpus", d.ask(t.Context(), r)); u.Err == nil || !strings.Contains(u.Err.Error(), "more than 10000 addresses") {
		t.Errorf("%v", u.Err)
	}
	r.records = nil
	for range MaxEndpoints + 1 {
		r.records = append(r.records, &net.SRV{Target: "c.", Port: 1})
	}
	if u = answered(last, "gpus", d.ask(t.Context(), r)); u.Err == nil || !strings.Contains(u.Err.Error(), "10001 records, want at most 10000") {
		t.Errorf("%v", u.Err)
	}
	r.records = r.records[:100]
	for i := range r.records {
		r.records[i] = &net.SRV{Target: fmt.Sprintf("gone-%d.", i), Port: 1}
	}
	if u = answered(last, "gpus", d.ask(t.Context(), r)); len(u.Problems) != maxListed+1 || !u.Set.Equal(last.Set) {
		t.Errorf("%d problems, %d endpoints", len(u.Problems), u.Set.Len())
	}
}

func setOf(addresses ...string) fleet.Set {
	var endpoints []fleet.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, fleet.Endpoint{Address: a, Weight: 1})
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

// A real name server and the real resolver: only a whole answer counts.
func TestDNSWithServer(t *testing.T) {
	server := nameserver.Start(t)
	server.SetAddresses("gpus.test", ips("10.0.0.1", "10.0.0.2", "fd00::1")...)
	server.SetAddresses("empty.test")
	var large []netip.Addr
	for i := range 1000 {
		large = append(large, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	server.SetAddresses("large.test", large...)
	server.SetAddresses("a.test", ips("10.0.0.7")...)
	server.SetService("_http._tcp.gpus.test", net.SRV{Target: "a.test.", Port: 8000, Priority: 1, Weight: 2}, net.SRV{Target: "gpus.test.", Port: 8001, Priority: 2, Weight: 2})
	for _, c := range []struct {
		name, ask string
		fault     nameserver.Fault
		change    func(*config.DNS)
		members   int
		err       string
	}{
		{name: "addresses", ask: "gpus.test.", members: 3},
		{name: "IPv4", ask: "gpus.test.", change: func(d *config.DNS) { d.Family = config.DNSIPv4 }, members: 2},
		{name: "IPv6", ask: "gpus.test.", change: func(d *config.DNS) { d.Family = config.DNSIPv6 }, members: 1},
		{name: "over TCP", ask: "gpus.test.", change: func(d *config.DNS) { d.TCP = true }, members: 3},
		{name: "services", ask: "_http._tcp.gpus.test.", change: func(d *config.DNS) { d.Type = config.DNSService }, members: 4},
		{name: "truncated, then TCP", ask: "large.test.", fault: nameserver.Truncated, members: 1000},
		{name: "truncated, no TCP", ask: "gpus.test.", fault: nameserver.Shortened, err: "gpus.test"},
		{name: "cut", ask: "gpus.test.", fault: nameserver.Cut, err: "malformed answer"},
		{name: "cut over TCP", ask: "gpus.test.", fault: nameserver.Cut, change: func(d *config.DNS) { d.TCP = true }, err: "malformed answer"},
		{name: "cut services", ask: "_http._tcp.gpus.test.", fault: nameserver.Cut, change: func(d *config.DNS) { d.Type = config.DNSService }, err: "gpus.test"},
		{name: "SERVFAIL", ask: "gpus.test.", fault: nameserver.Fails, err: "server misbehaving"},
		{name: "SERVFAIL of one family", ask: "gpus.test.", fault: nameserver.NoIPv6, err: "server misbehaving"},
		{name: "REFUSED", ask: "gpus.test.", fault: nameserver.Refuses, err: "server misbehaving"},
		{name: "NXDOMAIN", ask: "gpus.test.", fault: nameserver.Unknown, err: "no such name"},
		{name: "no records", ask: "empty.test.", err: "no such name, or no records"},
		{name: "silent", ask: "gpus.test.", fault: nameserver.Silent, err: "gpus.test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server.SetFault(c.fault)
			d := &DNS{DNS: config.DNS{Name: c.ask, Type: config.DNSAddress, Port: 80, Server: server.Address}}
			if c.change != nil {
				c.change(&d.DNS)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			before := Update{Set: setOf("10.9.9.9:80")}
			u := answered(before, c.ask, d.ask(ctx, newResolver(d.DNS)))
			switch {
			case c.err == "" && (u.Err != nil || u.Set.Len() != c.members):
				t.Errorf("%d members, %v; want %d", u.Set.Len(), u.Err, c.members)
			case c.err != "" && (u.Err == nil || !strings.Contains(u.Err.Error(), c.err) || !u.Set.Equal(before.Set)):
				t.Errorf("%d members, %v; want an error with %q", u.Set.Len(), u.Err, c.err)
			case c.err != "" && !strings.Contains(c.err, "no such name") && !strings.Contains(u.Err.Error(), "on "+server.Address+": "):
				t.Errorf("%v does not name the server", u.Err)
			}
		})
	}
}
