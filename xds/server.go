package xds

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/warmpath/warmpath/internal/fleet"
)

// ErrRefused is in the error of [Server.Acked] when an Envoy has answered that
// it cannot use what it was sent.
var ErrRefused = errors.New("endpoints refused by Envoy")

// Server is the control plane. It is safe for concurrent use.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer // no state of the world

	clusters, endpoints *cache.LinearCache
	delta               delta.Server
	clients             *clients

	ctx    context.Context
	cancel context.CancelFunc

	mu         sync.Mutex // one publication at a time
	ready      chan struct{}
	generation uint64
	set        fleet.Set
	cluster    *clusterv3.Cluster
	// oldServices are the EDS service names of other clusters that some Envoy
	// asks for: see adopt.
	oldServices []string
}

// New returns a server for one pool. It answers nothing before the first
// [Server.Publish].
func New(o Options, obs Observer) (*Server, error) {
	cluster, err := NewCluster(o)
	if err != nil {
		return nil, err
	}
	// Names this process in the versions that logs and Envoy's statistics show;
	// what decides whether a resource is sent is the hash of its content.
	prefix := cache.WithVersionPrefix(rand.Text()[:8] + ".")
	s := &Server{
		clusters:  cache.NewLinearCache(resource.ClusterType, prefix),
		endpoints: cache.NewLinearCache(resource.EndpointType, prefix),
		clients:   newClients(obs),
		ready:     make(chan struct{}),
		cluster:   cluster,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{resource.ClusterType: s.clusters, resource.EndpointType: s.endpoints},
	}
	s.delta = delta.NewServer(s.ctx, mux, callbacks{s})
	return s, nil
}

// Register adds the aggregated discovery service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// Close ends all streams; Envoy keeps its configuration and calls again. Call it
// before grpc.Server.GracefulStop, which waits for streams that never end by
// themselves, and bound that wait: an Envoy that is frozen holds its stream.
func (s *Server) Close() { s.cancel() }

// DeltaAggregatedResources serves one Envoy.
func (s *Server) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	select {
	case <-s.ready:
		return s.delta.DeltaStreamHandler(stream, resource.AnyType)
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	case <-s.ctx.Done():
		return status.Error(codes.Unavailable, "the control plane is shutting down")
	}
}

// Publish makes the set what every Envoy has, and returns its generation: 1 for
// the first, then one more for each that differs. Publishing the same set again
// sends nothing. An empty set is published too; whoever reads a source must not
// pass one on for an error.
func (s *Server) Publish(set fleet.Set) (generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation > 0 && set.Equal(s.set) {
		return s.generation, nil
	}
	return s.send(set, s.cluster)
}

// Reconfigure changes how Envoy reaches the pool, without a gap for requests. It
// returns the generation like Publish; before the first Publish it is 0. Acked
// tells of endpoints, which the change leaves as they are: it does not wait for
// the cluster.
func (s *Server) Reconfigure(o Options) (generation uint64, err error) {
	cluster, err := NewCluster(o)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case serviceName(cluster) == serviceName(s.cluster):
		return s.generation, nil
	case s.generation == 0:
		s.cluster = cluster
		return 0, nil
	}
	return s.send(s.set, cluster)
}

// send fills the caches. The endpoints go first: a cluster must find its own
// when Envoy asks for them. s.mu is held.
func (s *Server) send(set fleet.Set, cluster *clusterv3.Cluster) (uint64, error) {
	oldServices := s.stillWanted(serviceName(cluster))
	assignments, err := assign(set, serviceName(cluster), oldServices)
	if err != nil {
		return 0, err
	}
	generation := s.generation + 1
	if err := s.clients.expect(generation, assignments); err != nil {
		return 0, err
	}
	resources := make(map[string]types.Resource, len(assignments))
	for _, a := range assignments {
		resources[a.GetClusterName()] = a
	}
	stale := slices.DeleteFunc(append(slices.Clone(s.oldServices), serviceName(s.cluster)), func(service string) bool {
		return resources[service] != nil
	})
	if err := s.endpoints.UpdateResources(resources, stale); err != nil {
		return 0, fmt.Errorf("publish %d endpoints: %w", set.Len(), err)
	}
	if s.generation == 0 || cluster != s.cluster {
		if err := s.replaceCluster(cluster); err != nil {
			return 0, err
		}
	}
	if s.generation == 0 {
		close(s.ready)
	}
	s.generation, s.set, s.cluster, s.oldServices = generation, set, cluster, oldServices
	return generation, nil
}

// replaceCluster makes the cluster the only one, whatever it was called before.
func (s *Server) replaceCluster(cluster *clusterv3.Cluster) error {
	var gone []string
	if s.cluster.GetName() != cluster.GetName() {
		gone = append(gone, s.cluster.GetName())
	}
	if err := s.clusters.UpdateResources(map[string]types.Resource{cluster.GetName(): cluster}, gone); err != nil {
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

func serviceName(c *clusterv3.Cluster) string { return c.GetEdsClusterConfig().GetServiceName() }

// Acked waits until every connected Envoy that has subscribed to the pool's
// endpoints uses those of the generation or later ones, and returns at once when
// there is none. One that disconnects is no longer waited for, nor is one that
// refuses: then the error is [ErrRefused]. When ctx ends first the error is its
// cause and names the Envoys that are behind. The error is never a reason to
// stop: Envoy goes on with what it has.
func (s *Server) Acked(ctx context.Context, generation uint64) error {
	for {
		settled := s.clients.settled(generation)
		if len(settled.behind) == 0 {
			return settled.refusal(generation)
		}
		select {
		case <-settled.changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q to take generation %d: %w", settled.behind, generation, context.Cause(ctx))
		case <-s.ctx.Done():
			return fmt.Errorf("wait for %q to take generation %d: the control plane is closed", settled.behind, generation)
		}
	}
}

// Joined waits until an Envoy has subscribed to the pool's endpoints. The error
// is the cause that ctx ended.
func (s *Server) Joined(ctx context.Context) error {
	for {
		joined, changed := s.clients.joined()
		if joined {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for an Envoy: %w", context.Cause(ctx))
		case <-s.ctx.Done():
			return errors.New("wait for an Envoy: the control plane is closed")
		}
	}
}

// Status returns what the connected Envoys have taken.
func (s *Server) Status() Status { return s.clients.status() }
