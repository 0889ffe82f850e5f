package envoypolicy

import (
	"context"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
)

const (
	// Key is the key of the gRPC initial metadata. Envoy's HTTP clients cannot set
	// it, as their headers do not become metadata of the ext_proc stream, unless
	// the configured value is made of one, like "%REQ(x-policy)%".
	Key = "warmpath-policy"
	// Namespace is the key of the policy in a route's or a cluster's
	// filter_metadata.
	Namespace = "warmpath"
)

const (
	attributeCluster = "xds.cluster_metadata"
	attributeRoute   = "xds.route_metadata"
)

// NewInput collects what the first message of an ext_proc stream carries; ctx
// is the stream's context. Later messages lack the attributes (measured on
// Envoy 1.40). A key given several times counts by its last value, as in Envoy,
// where a route's value takes the place of the filter's.
func NewInput(ctx context.Context, m *extprocv3.ProcessingRequest) Input {
	in := Input{ClusterMetadata: m.GetMetadataContext().GetFilterMetadata()[Namespace]}
	if values := metadata.ValueFromIncomingContext(ctx, Key); len(values) > 0 {
		in.InitialMetadata = values[len(values)-1]
	}
	for _, attributes := range m.GetAttributes() { // one filter's, under a name that differs between versions
		fields := attributes.GetFields()
		if v, ok := fields[attributeCluster]; ok {
			in.ClusterText = v.GetStringValue()
		}
		if v, ok := fields[attributeRoute]; ok {
			in.RouteText = v.GetStringValue()
		}
	}
	return in
}
