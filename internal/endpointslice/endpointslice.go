// Package endpointslice turns the EndpointSlices of one Kubernetes Service into
// a [fleet.Set]. The result does not depend on the order of the slices.
//
// The rules are those of discovery.k8s.io/v1 (the API's own documentation of
// EndpointSlice, and KEP-752): an absent condition "ready" means yes, only the
// first address of an endpoint counts, and an endpoint may be in several slices
// while it moves from one to another.
package endpointslice

import (
	"encoding/json"
	"fmt"
)

// MaxEndpoints bounds the endpoints of a Service, all slices together.
const MaxEndpoints = 100_000

// Slice is the part of an EndpointSlice object that matters here.
type Slice struct {
	Metadata    Metadata   `json:"metadata"`
	AddressType string     `json:"addressType"`
	Endpoints   []Endpoint `json:"endpoints"`
	Ports       []Port     `json:"ports"`
}

// Metadata identifies a version of a slice.
type Metadata struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
}

// Endpoint is one entry of a slice, as a rule one address of a pod.
type Endpoint struct {
	Addresses  []string   `json:"addresses"`
	Conditions Conditions `json:"conditions"`
	TargetRef  *Target    `json:"targetRef"`
	Zone       string     `json:"zone"`
}

// Conditions are nil where nobody has said anything.
type Conditions struct {
	Ready       *bool `json:"ready"`
	Terminating *bool `json:"terminating"`
}

// Target is the object behind an endpoint.
type Target struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Port is one port that all endpoints of a slice serve.
type Port struct {
	Name     string `json:"name"`
	Port     *int64 `json:"port"`
	Protocol string `json:"protocol"` // empty is TCP
}

// Parse reads one EndpointSlice object.
func Parse(data []byte) (Slice, error) {
	var s Slice
	if err := json.Unmarshal(data, &s); err != nil {
		return Slice{}, fmt.Errorf("EndpointSlice of %d bytes: %w", len(data), err)
	}
	if s.Metadata.Name == "" {
		return Slice{}, fmt.Errorf("EndpointSlice of %d bytes: it has no metadata.name", len(data))
	}
	return s, nil
}
