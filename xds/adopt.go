package xds

import (
	"regexp"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
)

// maxOldServices bounds the service names that are served beside the present
// one. Each is a cluster that some Envoy has not left yet.
const maxOldServices = 64

// issued is the form of the names that nameService makes, of a cluster with a name
// that is not too long to be kept.
var issued = regexp.MustCompile(`^.{1,256}/[0-9a-f]{16}$`)

// adopt makes the endpoints available under every name that an Envoy asks for
// and that this or an earlier control plane has issued. Whatever the cluster
// was, its members are the present ones; and an Envoy whose question stays
// unanswered waits 15 seconds, takes no other cluster meanwhile, and then goes
// on with a pool that is empty. An Envoy may ask for any name of the past: it
// is told of a cluster, and before it asks for the endpoints there are newer
// ones.
func (s *Server) adopt(services []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, service := range services {
		if p := s.poolOf(service); p != nil && p.generation > 0 { // else it is adopted when there is something to say
			if err := p.adopt(service); err != nil {
				return err
			}
		}
	}
	return nil
}

// poolOf returns the pool whose cluster a service name was made for; the first
// pool if there is none of that name any more, nil if it is no such name. s.mu is
// held.
func (s *Server) poolOf(service string) *Pool {
	if !issued.MatchString(service) || len(s.pools) == 0 {
		return nil
	}
	cluster := service[:strings.LastIndexByte(service, '/')]
	for _, p := range s.pools {
		if p.cluster.GetName() == cluster || slices.Contains(p.oldServices, service) {
			return p
		}
	}
	return s.pools[0]
}

// adopt serves the pool's endpoints under one more name. The lock is held.
func (p *Pool) adopt(service string) error {
	if service == serviceName(p.cluster) || slices.Contains(p.oldServices, service) || len(p.oldServices) >= maxOldServices {
		return nil
	}
	a, err := LoadAssignment(service, p.set)
	if err != nil {
		return err
	}
	if err := p.server.clients.expect(p, p.generation, []*endpointv3.ClusterLoadAssignment{a}); err != nil {
		return err
	}
	if err := p.server.endpoints.UpdateResources(map[string]types.Resource{service: a}, nil); err != nil {
		return err
	}
	p.oldServices = append(p.oldServices, service)
	return nil
}

// stillWanted returns the names to serve beside the given one, when it becomes
// the present one: those that an Envoy has subscribed to. The lock is held.
func (p *Pool) stillWanted(present string) []string {
	if p.generation == 0 {
		return p.askedBefore(present)
	}
	var wanted []string
	for _, service := range append(slices.Clone(p.oldServices), serviceName(p.cluster)) {
		if service != present && p.server.clients.want(service) {
			wanted = append(wanted, service)
		}
	}
	return wanted
}

// askedBefore returns the names that Envoys have asked for while the pool had no
// members, but the present one. The lock is held.
func (p *Pool) askedBefore(present string) []string {
	var asked []string
	for _, service := range p.server.clients.allWanted() {
		if service != present && p.server.poolOf(service) == p && len(asked) < maxOldServices {
			asked = append(asked, service)
		}
	}
	return asked
}
