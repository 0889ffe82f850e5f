package endpointslice

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/internal/fleet"
)

// Options say how slices are read.
type Options struct {
	Port PortRef
	// Gone leaves out the endpoints that are terminating. Without it they drain:
	// they are members that get no new requests. Where Envoy has its endpoints
	// from Istio it has lost them already, and a drain is of no use.
	Gone bool
}

// Members is what slices say of a membership.
type Members struct {
	Set fleet.Set
	// Listed is how many endpoints the slices have, usable or not, those left out
	// on purpose not counted.
	Listed int
	// Faults are why some of them are not in Set, sorted by slice and place.
	Faults []Fault
	// Kept are the addresses that are in Set because they were before: their
	// slice has lost the port, as it does when a port is renamed.
	Kept []string
}

// Fault is what is wrong with a part of a slice.
type Fault struct {
	Slice, Path string
	Value       string // quoted and shortened; empty when nothing stands there
	Message     string // the predicate to Value
}

// member is an endpoint on its way into the set.
type member struct {
	fleet.Endpoint
	target Target
	four   bool
}

// reading is one call of Of.
type reading struct {
	Members
	options Options
	last    fleet.Set
	found   map[string]member
}

// Of reads the slices of one Service. last is the membership until now.
//
// Where one address is in several slices the most eligible state counts, because
// it is the copy that lags which says that a pod is not there yet. Where one pod
// has addresses of both families its IPv4 ones count: as two members it would have
// two shares.
func Of(all []Slice, last fleet.Set, o Options) Members {
	r := &reading{options: o, last: last, found: make(map[string]member)}
	for _, s := range all {
		r.slice(s)
	}
	four := make(map[Target]bool)
	for _, m := range r.found {
		if m.four && m.target != (Target{}) {
			four[m.target] = true
		}
	}
	endpoints := make([]fleet.Endpoint, 0, len(r.found))
	for _, m := range r.found {
		if m.four || !four[m.target] {
			endpoints = append(endpoints, m.Endpoint)
		}
	}
	r.Set, _ = fleet.NewSet(endpoints) // each address is there once
	slices.SortFunc(r.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Message, b.Message))
	})
	slices.Sort(r.Kept)
	r.Kept = slices.DeleteFunc(slices.Compact(r.Kept), func(a string) bool {
		_, in := r.Set.Index(a)
		return !in
	})
	return r.Members
}

// slice takes the endpoints of one slice over.
func (r *reading) slice(s Slice) {
	if len(s.Endpoints) == 0 {
		return
	}
	if s.AddressType != "IPv4" && s.AddressType != "IPv6" {
		r.Listed += len(s.Endpoints)
		r.fault(s, "addressType", quote(s.AddressType), "is not IPv4 or IPv6: its endpoints are left out, because a host name makes Envoy refuse the whole list")
		return
	}
	port, fault := r.options.Port.of(s)
	if fault != "" {
		r.fault(s, "ports", "", fault)
	}
	for i, e := range s.Endpoints {
		state, counts := r.options.state(e.Conditions)
		if !counts {
			continue
		}
		r.Listed++
		addr, ok := r.addr(s, i, e)
		switch {
		case !ok:
		case fault != "":
			r.keep(addr, state)
		default:
			r.endpoint(s, i, e, netip.AddrPortFrom(addr, port), state)
		}
	}
}

// state returns what conditions say, and false if the endpoint is to be left out.
func (o Options) state(c Conditions) (fleet.State, bool) {
	switch {
	case c.Terminating != nil && *c.Terminating:
		return fleet.Draining, !o.Gone
	case c.Ready != nil && !*c.Ready:
		return fleet.Unhealthy, true
	default:
		return fleet.Healthy, true
	}
}

// addr returns the address of the i-th endpoint, without its port.
func (r *reading) addr(s Slice, i int, e Endpoint) (netip.Addr, bool) {
	path := fmt.Sprintf("endpoints[%d].addresses", i)
	if len(e.Addresses) == 0 {
		r.fault(s, path, "", "is empty, want an IP address")
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		r.fault(s, path+"[0]", quote(e.Addresses[0]), "is not an IP address")
		return netip.Addr{}, false
	}
	return addr, true
}

// endpoint takes one over, or the better of it and an earlier copy.
func (r *reading) endpoint(s Slice, i int, e Endpoint, at netip.AddrPort, state fleet.State) {
	address, err := fleet.ParseAddress(at.String())
	if err != nil {
		r.fault(s, fmt.Sprintf("endpoints[%d].addresses[0]", i), quote(e.Addresses[0]), "is not the address of one host that Envoy can reach")
		return
	}
	m := member{
		Endpoint: fleet.Endpoint{Address: address, Weight: fleet.MinWeight, State: state},
		four:     at.Addr().Unmap().Is4(),
	}
	if e.TargetRef != nil {
		m.target = *e.TargetRef
	}
	if usableZone(e.Zone) {
		m.Zone = e.Zone
	} else {
		r.fault(s, fmt.Sprintf("endpoints[%d].zone", i), quote(e.Zone), "is not a zone (want at most 128 characters, no blanks): the endpoint is used without one")
	}
	r.take(m)
}

// keep lets an address stay in the set that was there before.
func (r *reading) keep(addr netip.Addr, state fleet.State) {
	addr = addr.Unmap()
	prefix := netip.AddrPortFrom(addr, 1).String()
	prefix = prefix[:len(prefix)-1]
	i, _ := r.last.Index(prefix)
	for ; i < r.last.Len() && strings.HasPrefix(r.last.At(i).Address, prefix); i++ {
		e := r.last.At(i)
		e.State = state
		r.Kept = append(r.Kept, e.Address)
		r.take(member{Endpoint: e, four: addr.Is4()})
	}
}

// take adds a member, or what is better of two that have one address.
func (r *reading) take(m member) {
	if other, again := r.found[m.Address]; again {
		m.State = min(m.State, other.State)
		m.Zone = max(m.Zone, other.Zone) // any rule that prefers one to none
		if compareTargets(other.target, m.target) > 0 {
			m.target = other.target
		}
	}
	r.found[m.Address] = m
}

func compareTargets(a, b Target) int {
	return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// usableZone: a zone becomes a label, so it has the bounds of one in a file.
func usableZone(zone string) bool {
	return len(zone) <= 128 && !strings.ContainsFunc(zone, func(r rune) bool { return r < '!' || r > '~' })
}

func (r *reading) fault(s Slice, path, value, message string) {
	r.Faults = append(r.Faults, Fault{Slice: s.Metadata.Name, Path: path, Value: value, Message: message})
}

// quote makes a value fit for a message.
func quote(s string) string { return fmt.Sprintf("%.80q", s) }
