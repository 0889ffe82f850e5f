package xds

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// sparing is a stream on which an Envoy does not tell that it has resources of a pool
// without members here. What it is not known to have is never taken from it, and the
// pool's first publication sends it as something new, which an Envoy that has just
// that does nothing about.
type sparing struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	s *Server
}

// Recv returns the next message without those resources.
func (w *sparing) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	r, err := w.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Recv()
	if err != nil {
		return nil, err
	}
	for _, cluster := range w.s.spare(r) {
		if w.s.clients.obs.OnSpared != nil {
			w.s.clients.obs.OnSpared(cluster)
		}
	}
	return r, nil
}

// spare takes what belongs to a pool that was not published yet out of what a message
// says that its Envoy has, and returns the clusters among that.
func (s *Server) spare(r *discovery.DeltaDiscoveryRequest) (clusters []string) {
	has := r.GetInitialResourceVersions()
	if len(has) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.GetTypeUrl() {
	case resource.ClusterType:
		for _, p := range s.pools {
			name := p.cluster.GetName()
			if _, ok := has[name]; ok && p.generation == 0 {
				delete(has, name)
				clusters = append(clusters, name)
			}
		}
	case resource.EndpointType:
		for service := range has {
			if p := s.poolOf(service); p != nil && p.generation == 0 {
				delete(has, service)
			}
		}
	}
	return clusters
}
