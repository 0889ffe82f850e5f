package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
)

// MaxEndpoints bounds a membership that somebody else than the operator's files
// can make grow.
const MaxEndpoints = 10_000

// lookupTimeout is how long all queries of one reading may take.
const lookupTimeout = 10 * time.Second

// Resolver asks name servers, as [net.Resolver] does. A lookup fails as a whole:
// of an answer that could be had in part only, nothing may be returned.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// DNS is a membership that a name server answers, asked again and again.
type DNS struct {
	config.DNS
	// Resolver asks; nil is Go's own, with the configured server.
	Resolver Resolver
}

// Run asks at once and at every interval. It reports what differs from the last
// report, and every failure.
func (d *DNS) Run(ctx context.Context, report func(Update)) error {
	resolver := d.Resolver
	if resolver == nil {
		resolver = newResolver(d.DNS)
	}
	var last Update
	var good time.Time
	tick := time.NewTicker(d.Interval)
	defer tick.Stop()
	for first := true; ; first = false {
		a := d.ask(ctx, resolver)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		u := answered(last, d.Name, a)
		u.At = time.Now()
		if u.Err == nil {
			good = u.At
		}
		u.LastGood = good
		if first || u.Err != nil || differs(last, u) {
			last = u
			report(u)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func differs(a, b Update) bool {
	return !a.Set.Equal(b.Set) || (a.Err == nil) != (b.Err == nil) || !slices.Equal(a.Problems, b.Problems)
}

// answer is what a reading has brought.
type answer struct {
	endpoints []fleet.Endpoint
	problems  config.Problems // of records that were left out
	err       error           // nothing else counts then
}

// ask makes one reading.
func (d *DNS) ask(ctx context.Context, resolver Resolver) answer {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if d.Type == config.DNSService {
		return d.named(d.askService(ctx, resolver))
	}
	return d.named(d.askAddresses(ctx, resolver))
}

// named has a failure name the server that was asked: the resolver only knows
// those of resolv.conf.
func (d *DNS) named(a answer) answer {
	var failure *net.DNSError
	if d.Server != "" && errors.As(a.err, &failure) {
		own := *failure
		own.Server = d.Server
		a.err = &own
	}
	return a
}

func (d *DNS) askAddresses(ctx context.Context, resolver Resolver) answer {
	addresses, err := resolver.LookupNetIP(ctx, network(d.Family), d.Name)
	if err != nil {
		return answer{err: err}
	}
	var a answer
	for _, ip := range addresses {
		a.add(ip, uint16(d.Port), fleet.Endpoint{Weight: fleet.MinWeight})
	}
	return a
}

// network is the family in the words of package net.
func network(f config.DNSFamily) string {
	switch f {
	case config.DNSIPv4:
		return "ip4"
	case config.DNSIPv6:
		return "ip6"
	default:
		return "ip"
	}
}

// add takes an address, unless Envoy could not use it.
func (a *answer) add(ip netip.Addr, port uint16, e fleet.Endpoint) {
	address, err := fleet.ParseAddress(netip.AddrPortFrom(ip, port).String())
	if err != nil {
		a.problems = append(a.problems, config.Problem{File: "dns", Message: err.Error()})
		return
	}
	e.Address = address
	a.endpoints = append(a.endpoints, e)
}

// answered is the state after a reading: a function of the last state and the
// answer, without the times. An answer without endpoints is never taken over: a
// name server that lacks a zone for a moment says just that.
func answered(last Update, name string, a answer) Update {
	kept := Update{Set: last.Set}
	stays := "no endpoints are known yet"
	if last.Set.Len() > 0 {
		stays = "the last good answer stays"
	}
	var failure *net.DNSError
	switch {
	case errors.As(a.err, &failure) && failure.IsNotFound:
		kept.Err = fmt.Errorf("dns: %q: no such name, or no records of that type; %s", name, stays)
		return kept
	case a.err != nil:
		kept.Err = fmt.Errorf("dns: %s; %s", withoutOwnPort(a.err), stays)
		return kept
	case len(a.endpoints) > MaxEndpoints:
		kept.Err = fmt.Errorf("dns: %q: the answer has %d endpoints, want at most %d; %s", name, len(a.endpoints), MaxEndpoints, stays)
		return kept
	case len(a.endpoints) == 0:
		kept.Err, kept.Problems = fmt.Errorf("dns: %q: the answer has no endpoint that can be used; %s", name, stays), a.listed()
		return kept
	}
	set, _ := fleet.NewSet(a.endpoints)
	return Update{Set: set, Problems: a.listed()}
}

// maxListed bounds the problems of an answer that are told of one by one.
const maxListed = 20

// listed are the problems in an order that is not that of the answer.
func (a answer) listed() config.Problems {
	slices.SortFunc(a.problems, func(a, b config.Problem) int { return strings.Compare(a.String(), b.String()) })
	if more := len(a.problems) - maxListed; more > 0 {
		return append(slices.Clip(a.problems[:maxListed]), config.Problem{File: "dns", Message: fmt.Sprintf("%d more records are left out", more)})
	}
	return a.problems
}

// ownPort is this machine's end of a query.
var ownPort = regexp.MustCompile(`\S+->`)

// withoutOwnPort makes the texts of one failure equal each time: every query has
// another port.
func withoutOwnPort(err error) string { return ownPort.ReplaceAllString(err.Error(), "") }
