package xds

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/warmpath/warmpath/internal/fleet"
)

// LoadAssignment returns the set as Envoy's endpoints of one EDS service: a
// locality for each priority and zone, sorted, and in it the endpoints in address
// order. Equal sets make equal messages.
func LoadAssignment(service string, set fleet.Set) (*endpointv3.ClusterLoadAssignment, error) {
	type place struct {
		priority uint32
		zone     string
	}
	places := make(map[place]*endpointv3.LocalityLbEndpoints)
	cla := &endpointv3.ClusterLoadAssignment{ClusterName: service}
	levels := priorities(set)
	for i := range set.Len() {
		e := set.At(i)
		host, err := lbEndpoint(e)
		if err != nil {
			return nil, fmt.Errorf("endpoints of %s: %w", service, err)
		}
		at := place{levels[e.Priority], e.Zone}
		group, ok := places[at]
		if !ok {
			group = &endpointv3.LocalityLbEndpoints{Locality: locality(e.Zone), Priority: at.priority}
			places[at] = group
			cla.Endpoints = append(cla.Endpoints, group)
		}
		group.LbEndpoints = append(group.LbEndpoints, host)
	}
	slices.SortFunc(cla.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), strings.Compare(a.GetLocality().GetZone(), b.GetLocality().GetZone()))
	})
	// Nothing is packed inside it, and looking for that is half of what a change of
	// 10,000 endpoints would cost.
	if err := validateOne(cla); err != nil {
		return nil, fmt.Errorf("endpoints of %s: %w", service, err)
	}
	return cla, nil
}

// priorities numbers the priorities there are from 0 without a gap, as Envoy wants
// them.
func priorities(set fleet.Set) (levels [fleet.MaxPriority + 1]uint32) {
	var is [fleet.MaxPriority + 1]bool
	for i := range set.Len() {
		is[min(set.At(i).Priority, fleet.MaxPriority)] = true
	}
	next := uint32(0)
	for p := range is {
		if levels[p] = next; is[p] {
			next++
		}
	}
	return levels
}

// locality is nil for the unknown zone: Envoy shows a locality with an empty
// zone in every statistic.
func locality(zone string) *corev3.Locality {
	if zone == "" {
		return nil
	}
	return &corev3.Locality{Zone: zone}
}

func lbEndpoint(e fleet.Endpoint) (*endpointv3.LbEndpoint, error) {
	// A name instead of an address would make Envoy refuse all of them.
	ap, err := netip.ParseAddrPort(e.Address)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: want ip:port: %w", e.Address, err)
	}
	status, err := health(e.State)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", e.Address, err)
	}
	if e.Priority > fleet.MaxPriority {
		return nil, fmt.Errorf("endpoint %q: priority %d, want 0..%d", e.Address, e.Priority, fleet.MaxPriority)
	}
	if e.Weight < fleet.MinWeight || e.Weight > fleet.MaxWeight {
		return nil, fmt.Errorf("endpoint %q: weight %d, want %d..%d", e.Address, e.Weight, fleet.MinWeight, fleet.MaxWeight)
	}
	return &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(ap)}},
		HealthStatus:   status,
		// Only Envoy's own fallback weighs with it; the router has the same weights.
		LoadBalancingWeight: wrapperspb.UInt32(e.Weight),
	}, nil
}

func socket(ap netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       ap.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(ap.Port())},
	}}}
}

func health(s fleet.State) (corev3.HealthStatus, error) {
	switch s {
	case fleet.Healthy:
		return corev3.HealthStatus_HEALTHY, nil
	case fleet.Unhealthy:
		return corev3.HealthStatus_UNHEALTHY, nil
	case fleet.Draining:
		return corev3.HealthStatus_DRAINING, nil
	default:
		return 0, fmt.Errorf("%s: want healthy, unhealthy or draining", s)
	}
}
