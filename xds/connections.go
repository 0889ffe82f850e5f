package xds

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// httpProtocolOptions is the key of a cluster's options of HTTP, and their type.
const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// limitConnections has Envoy close a connection after n requests, and leaves the
// other options of the cluster as they are; 0 changes nothing. A cluster without
// options gets those of HTTP/1.1, which is what Envoy speaks to it anyway.
func limitConnections(c *clusterv3.Cluster, n uint32) error {
	if n == 0 {
		return nil
	}
	options := &upstreamhttpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
					HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
				},
			},
		},
	}
	if own := c.GetTypedExtensionProtocolOptions()[httpProtocolOptions]; own != nil {
		if err := own.UnmarshalTo(options); err != nil {
			return fmt.Errorf("read its %s: %w", httpProtocolOptions, err)
		}
	}
	if options.CommonHttpProtocolOptions == nil {
		options.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{}
	}
	options.CommonHttpProtocolOptions.MaxRequestsPerConnection = wrapperspb.UInt32(n)
	limited, err := anypb.New(options)
	if err != nil {
		return fmt.Errorf("write its %s: %w", httpProtocolOptions, err)
	}
	if c.TypedExtensionProtocolOptions == nil {
		c.TypedExtensionProtocolOptions = make(map[string]*anypb.Any)
	}
	c.TypedExtensionProtocolOptions[httpProtocolOptions] = limited
	return nil
}
