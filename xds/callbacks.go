package xds

import (
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// callbacks connects go-control-plane's delta server to ours. They are called in
// the stream's goroutine.
type callbacks struct{ s *Server }

func (c callbacks) OnDeltaStreamOpen(_ context.Context, stream int64, _ string) error {
	c.s.clients.open(stream)
	return nil
}

func (c callbacks) OnDeltaStreamClosed(stream int64, _ *corev3.Node) { c.s.clients.closed(stream) }

// OnStreamDeltaRequest comes before the cache is asked. The subscription is
// recorded first, so that no publication drops a name between the two steps.
func (c callbacks) OnStreamDeltaRequest(stream int64, r *discovery.DeltaDiscoveryRequest) error {
	if err := c.s.clients.request(stream, r); err != nil {
		return err
	}
	if r.GetTypeUrl() != resource.EndpointType {
		return nil
	}
	return c.s.adopt(r.GetResourceNamesSubscribe())
}

func (c callbacks) OnStreamDeltaResponse(stream int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	c.s.clients.sending(stream, r)
}
