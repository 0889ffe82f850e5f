package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"

	"github.com/warmpath/warmpath/internal/fleet"
)

// Pool is one cluster and its endpoints. Its fields are the server's lock's.
type Pool struct {
	server     *Server
	generation uint64
	set        fleet.Set
	cluster    *clusterv3.Cluster
	// oldServices are the EDS service names of other clusters that some Envoy
	// asks for: see adopt.
	oldServices []string
}

// Add makes a pool, before anything is served. An Envoy that has the pool already
// keeps it as it is until its first [Pool.Publish].
func (s *Server) Add(o Options) (*Pool, error) {
	cluster, err := NewCluster(o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		if p.cluster.GetName() == cluster.GetName() {
			return nil, fmt.Errorf("cluster %q: two pools have this name", cluster.GetName())
		}
	}
	p := &Pool{server: s, cluster: cluster}
	s.pools = append(s.pools, p)
	return p, nil
}

// Publish makes the set what every Envoy has of the pool, and returns its
// generation: 1 for the first, then one more for each that differs. Publishing the
// same set again sends nothing. An empty set is published too; whoever reads a
// source must not pass one on for an error.
func (p *Pool) Publish(set fleet.Set) (generation uint64, err error) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if p.generation > 0 && set.Equal(p.set) {
		return p.generation, nil
	}
	return p.send(set, p.cluster)
}

// Reconfigure changes how Envoy reaches the pool, without a gap for requests. It
// returns the generation like Publish; before the first Publish it is 0. Acked
// tells of endpoints, which the change leaves as they are: it does not wait for
// the cluster.
func (p *Pool) Reconfigure(o Options) (generation uint64, err error) {
	cluster, err := NewCluster(o)
	if err != nil {
		return 0, err
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	switch {
	case serviceName(cluster) == serviceName(p.cluster):
		return p.generation, nil
	case p.generation == 0:
		p.cluster = cluster
		return 0, nil
	}
	return p.send(p.set, cluster)
}

// send fills the caches. The endpoints go first: a cluster must find its own
// when Envoy asks for them. The lock is held.
func (p *Pool) send(set fleet.Set, cluster *clusterv3.Cluster) (uint64, error) {
	s := p.server
	oldServices := p.stillWanted(serviceName(cluster))
	assignments, err := assign(set, serviceName(cluster), oldServices)
	if err != nil {
		return 0, err
	}
	generation := p.generation + 1
	if err := s.clients.expect(p, generation, assignments); err != nil {
		return 0, err
	}
	resources := make(map[string]types.Resource, len(assignments))
	for _, a := range assignments {
		resources[a.GetClusterName()] = a
	}
	stale := slices.DeleteFunc(append(slices.Clone(p.oldServices), serviceName(p.cluster)), func(service string) bool {
		return resources[service] != nil
	})
	if err := s.endpoints.UpdateResources(resources, stale); err != nil {
		return 0, fmt.Errorf("publish %d endpoints: %w", set.Len(), err)
	}
	if p.generation == 0 || cluster != p.cluster {
		if err := p.replaceCluster(cluster); err != nil {
			return 0, err
		}
	}
	if p.generation == 0 && !slices.ContainsFunc(s.pools, func(p *Pool) bool { return p.generation > 0 }) {
		close(s.some)
	}
	p.generation, p.set, p.cluster, p.oldServices = generation, set, cluster, oldServices
	return generation, nil
}

// replaceCluster makes the cluster the pool's only one, whatever it was called
// before.
func (p *Pool) replaceCluster(cluster *clusterv3.Cluster) error {
	var gone []string
	if p.cluster.GetName() != cluster.GetName() {
		gone = append(gone, p.cluster.GetName())
	}
	if err := p.server.clusters.UpdateResources(map[string]types.Resource{cluster.GetName(): cluster}, gone); err != nil {
		return fmt.Errorf("publish cluster %q: %w", cluster.GetName(), err)
	}
	return nil
}

func assign(set fleet.Set, service string, oldServices []string) ([]*endpointv3.ClusterLoadAssignment, error) {
	all := make([]*endpointv3.ClusterLoadAssignment, 0, 1+len(oldServices))
	for _, service := range append([]string{service}, oldServices...) {
		a, err := LoadAssignment(service, set)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// Acked waits until every connected Envoy that has subscribed to the pool's
// endpoints uses those of the generation or later ones, and returns at once when
// there is none. One that disconnects is no longer waited for, nor is one that
// refuses: then the error is [ErrRefused]. When ctx ends first the error is its
// cause and names the Envoys that are behind. The error is never a reason to
// stop: Envoy goes on with what it has.
func (p *Pool) Acked(ctx context.Context, generation uint64) error {
	for {
		settled := p.server.clients.settled(p, generation)
		if len(settled.behind) == 0 {
			return settled.refusal(generation)
		}
		select {
		case <-settled.changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q to take generation %d: %w", settled.behind, generation, context.Cause(ctx))
		case <-p.server.ctx.Done():
			return fmt.Errorf("wait for %q to take generation %d: the control plane is closed", settled.behind, generation)
		}
	}
}

// Joined waits until an Envoy has subscribed to the pool's endpoints. The error
// is the cause that ctx ended.
func (p *Pool) Joined(ctx context.Context) error {
	for {
		joined, changed := p.server.clients.joined(p)
		if joined {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for an Envoy: %w", context.Cause(ctx))
		case <-p.server.ctx.Done():
			return errors.New("wait for an Envoy: the control plane is closed")
		}
	}
}

// Status returns what the connected Envoys have taken of the pool.
func (p *Pool) Status() Status {
	p.server.mu.Lock()
	generation := p.generation
	p.server.mu.Unlock()
	return p.server.clients.status(p, generation)
}
