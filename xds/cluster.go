package xds

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	// The extensions that a cluster may name; protojson resolves only those
	// that are linked in.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/warmpath/warmpath/envoy"
)

// Options say how Envoy reaches the pool. The zero value is the shipped cluster.
type Options struct {
	// Cluster is the template, an envoy.config.cluster.v3.Cluster in YAML; nil
	// means envoy.Cluster(). It must be of type EDS with eds_config over ADS.
	Cluster []byte
	// Name replaces the template's name; empty keeps it. Envoy's routes use it.
	Name string
	// ConnectTimeout replaces the template's; zero keeps it.
	ConnectTimeout time.Duration
	// MaxRequestsPerConnection is after how many requests Envoy closes a connection
	// to an endpoint; zero keeps what the template has.
	MaxRequestsPerConnection uint32
}

// NewCluster returns the cluster that the options describe, validated, with the
// EDS service name that belongs to its content. Equal options make equal
// clusters, in every process.
func NewCluster(o Options) (*clusterv3.Cluster, error) {
	template := o.Cluster
	if template == nil {
		template = envoy.Cluster()
	}
	c, err := parseCluster(template)
	if err != nil {
		return nil, err
	}
	if o.Name != "" {
		c.Name = o.Name
	}
	switch {
	case o.ConnectTimeout < 0:
		return nil, fmt.Errorf("cluster %q: connect timeout %s, want more than zero", c.GetName(), o.ConnectTimeout)
	case o.ConnectTimeout > 0:
		c.ConnectTimeout = durationpb.New(o.ConnectTimeout)
	}
	if err := limitConnections(c, o.MaxRequestsPerConnection); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", c.GetName(), err)
	}
	if c.GetType() != clusterv3.Cluster_EDS || c.GetEdsClusterConfig().GetEdsConfig().GetAds() == nil {
		return nil, fmt.Errorf("cluster %q: want type EDS with eds_config {ads: {}}, its endpoints come from here", c.GetName())
	}
	if err := nameService(c); err != nil {
		return nil, err
	}
	if err := validate(c); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", c.GetName(), err)
	}
	return c, nil
}

// nameService sets the EDS service name to "cluster/hash of all the rest".
func nameService(c *clusterv3.Cluster) error {
	c.EdsClusterConfig.ServiceName = ""
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return fmt.Errorf("cluster %q: hash its content: %w", c.GetName(), err)
	}
	c.EdsClusterConfig.ServiceName = fmt.Sprintf("%s/%016x", c.GetName(), xxhash.Sum64(content))
	return nil
}

// parseCluster reads the YAML form, refusing fields that the message lacks.
func parseCluster(text []byte) (*clusterv3.Cluster, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read the cluster's YAML: %w", err)
	}
	object, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's YAML as JSON: %w", err)
	}
	c := new(clusterv3.Cluster)
	if err := protojson.Unmarshal(object, c); err != nil {
		return nil, fmt.Errorf("read the cluster as envoy.config.cluster.v3.Cluster: %w", err)
	}
	return c, nil
}
