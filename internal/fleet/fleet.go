// Package fleet holds the membership of a pool as plain values: an [Endpoint]
// is one model server, a [Set] is the immutable, ordered list of them.
//
// It is pure: no clock, no I/O, no goroutine. Everything that decides where a
// request goes is a function of a Set, so two routers that hold equal Sets
// choose alike, in whatever order their sources listed the members.
package fleet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Bounds of an endpoint's weight. Envoy refuses a load assignment with a
// weight of zero, so zero is not a weight here either: drain the endpoint.
const (
	MinWeight = 1
	MaxWeight = 1000
)

// MaxPriority bounds an endpoint's priority.
const MaxPriority = 9

// State says whether an endpoint may be given new requests.
type State uint8

// The states of an endpoint, from the most to the least eligible.
const (
	// Healthy endpoints are chosen.
	Healthy State = iota
	// Unhealthy endpoints are chosen only when no endpoint is healthy.
	Unhealthy
	// Draining endpoints finish what they run and are chosen only when there
	// is no other endpoint at all.
	Draining
)

var stateNames = [...]string{Healthy: "healthy", Unhealthy: "unhealthy", Draining: "draining"}

// String returns the name that configuration and metrics use.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState reads a state by its name; the empty name is Healthy.
func ParseState(name string) (State, error) {
	if name == "" {
		return Healthy, nil
	}
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("state %q: want one of %s", name, strings.Join(stateNames[:], ", "))
}

// Endpoint is one model server that Envoy can reach.
type Endpoint struct {
	// Address is the canonical "ip:port" or "[ip]:port" made by [ParseAddress].
	// It is the endpoint's identity, in Envoy, in counters and in decisions.
	Address string
	// Weight is the endpoint's share relative to the others, MinWeight to MaxWeight.
	Weight uint32
	State  State
	// Zone is the locality's zone; empty when not known.
	Zone string
	// Priority is 0 for endpoints that are used first, up to MaxPriority for those
	// that are used while none of a lower number can be.
	Priority uint8
	// Instance is the machine that the endpoint is a copy of the model on, where one
	// machine has several; empty when it has one.
	Instance string
	// Adapters are the LoRA adapters that the endpoint is known to have.
	Adapters Names
}

// ParseAddress returns the canonical form of an endpoint address, the one that
// Envoy prints too: IPv6 compressed and in brackets, an IPv4-mapped address as
// plain IPv4. Host names are refused, because one name makes Envoy reject the
// whole load assignment.
func ParseAddress(s string) (string, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		return "", fmt.Errorf("address %q: want ip:port or [ip]:port: %w", s, err)
	}
	switch addr := ap.Addr().Unmap(); {
	case ap.Port() == 0:
		return "", fmt.Errorf("address %q: port 0 cannot be connected to, want 1..65535", s)
	case addr.Zone() != "":
		return "", fmt.Errorf("address %q: Envoy takes no address with an interface zone (%%%s)", s, addr.Zone())
	case addr.IsUnspecified() || addr.IsMulticast():
		return "", fmt.Errorf("address %q: not the address of one host", s)
	default:
		return netip.AddrPortFrom(addr, ap.Port()).String(), nil
	}
}

// Set is an immutable collection of endpoints with distinct addresses, sorted
// by address. The zero Set is empty and ready to use.
type Set struct {
	endpoints []Endpoint
	version   uint64
}

// NewSet sorts the endpoints and drops every repetition of an address, keeping
// the first in the given order, as Envoy does. It returns the addresses that
// were dropped so that the caller can warn. The input is not kept.
//
// Addresses must be canonical and weights in range: sources check both.
func NewSet(endpoints []Endpoint) (set Set, duplicates []string) {
	sorted := slices.Clone(endpoints)
	slices.SortStableFunc(sorted, func(a, b Endpoint) int { return strings.Compare(a.Address, b.Address) })
	kept := sorted[:0]
	for _, e := range sorted {
		if len(kept) > 0 && kept[len(kept)-1].Address == e.Address {
			duplicates = append(duplicates, e.Address)
			continue
		}
		kept = append(kept, e)
	}
	return Set{endpoints: slices.Clip(kept), version: hash(kept)}, duplicates
}

// Len returns the number of endpoints.
func (s Set) Len() int { return len(s.endpoints) }

// At returns the i-th endpoint in address order.
func (s Set) At(i int) Endpoint { return s.endpoints[i] }

// Endpoints returns a copy, in address order.
func (s Set) Endpoints() []Endpoint { return slices.Clone(s.endpoints) }

// Index returns the position of an address, or false when it is not a member.
func (s Set) Index(address string) (int, bool) {
	return slices.BinarySearchFunc(s.endpoints, address, func(e Endpoint, a string) int {
		return strings.Compare(e.Address, a)
	})
}

// Version is a hash of the content: equal for equal sets in every process, and
// different, but for the chance of a 64-bit collision, for different ones.
func (s Set) Version() uint64 { return s.version }

// Equal reports whether both sets hold the same endpoints.
func (s Set) Equal(o Set) bool { return slices.Equal(s.endpoints, o.endpoints) }

func hash(endpoints []Endpoint) uint64 {
	if len(endpoints) == 0 {
		return 0 // as the zero Set's
	}
	d := xxhash.New()
	var n [8]byte
	field := func(s string) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = d.Write(n[:])
		_, _ = d.WriteString(s)
	}
	number := func(u uint64) {
		binary.LittleEndian.PutUint64(n[:], u)
		_, _ = d.Write(n[:])
	}
	for _, e := range endpoints {
		field(e.Address)
		field(e.Zone)
		placed := e.Priority != 0 || e.Instance != "" || e.Adapters != ""
		u := uint64(e.Weight)<<8 | uint64(e.State)
		if !placed {
			number(u)
			continue
		}
		number(u | 1<<63) // more follows
		number(uint64(e.Priority))
		field(e.Instance)
		field(string(e.Adapters))
	}
	return d.Sum64()
}
