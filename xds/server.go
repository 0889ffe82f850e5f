package xds

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrRefused is in the error of [Server.Acked] when an Envoy has answered that
// it cannot use what it was sent.
var ErrRefused = errors.New("endpoints refused by Envoy")

// Server is the control plane of any number of pools. It is safe for concurrent
// use.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer // no state of the world

	clusters, endpoints *cache.LinearCache
	delta               delta.Server
	clients             *clients

	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex // one publication at a time
	pools []*Pool
	some  chan struct{} // closed once any pool was published
}

// New returns a server without pools: see [Server.Add].
func New(obs Observer) *Server {
	// Names this process in the versions that logs and Envoy's statistics show;
	// what decides whether a resource is sent is the hash of its content.
	prefix := cache.WithVersionPrefix(rand.Text()[:8] + ".")
	s := &Server{
		clusters:  cache.NewLinearCache(resource.ClusterType, prefix),
		endpoints: cache.NewLinearCache(resource.EndpointType, prefix),
		clients:   newClients(obs),
		some:      make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{resource.ClusterType: s.clusters, resource.EndpointType: s.endpoints},
	}
	s.delta = delta.NewServer(s.ctx, mux, callbacks{s})
	return s
}

// Types are the types of the resources that are served, as a [Nack] has them.
func Types() []string { return []string{resource.ClusterType, resource.EndpointType} }

// Register adds the aggregated discovery service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// Close ends all streams; Envoy keeps its configuration and calls again. Call it
// before grpc.Server.GracefulStop, which waits for streams that never end by
// themselves, and bound that wait: an Envoy that is frozen holds its stream.
func (s *Server) Close() { s.cancel() }

// DeltaAggregatedResources serves one Envoy as soon as there is anything to serve. Of
// a pool that has no members here yet it says nothing, whatever the Envoy has of it.
func (s *Server) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if err := s.await(stream.Context(), s.some); err != nil {
		return err
	}
	return s.delta.DeltaStreamHandler(&sparing{stream, s}, resource.AnyType)
}

func (s *Server) await(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-s.ctx.Done():
		return status.Error(codes.Unavailable, "the control plane is shutting down")
	}
}

func serviceName(c *clusterv3.Cluster) string { return c.GetEdsClusterConfig().GetServiceName() }
