package xds

import (
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// callbacks connects go-control-plane's delta server to the record of clients.
type callbacks struct{ *clients }

func (c callbacks) OnDeltaStreamOpen(_ context.Context, stream int64, _ string) error {
	c.open(stream)
	return nil
}

func (c callbacks) OnDeltaStreamClosed(stream int64, _ *corev3.Node) { c.closed(stream) }

func (c callbacks) OnStreamDeltaRequest(stream int64, r *discovery.DeltaDiscoveryRequest) error {
	return c.request(stream, r)
}

func (c callbacks) OnStreamDeltaResponse(stream int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	c.sending(stream, r)
}
