package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/envoy"
)

// place is where an arm is: the listener that clients use, and the router's
// address if it has one.
type place struct {
	arm
	listener, extProc string
}

// node is a part of Envoy's configuration.
type node = map[string]any

// bootstrap returns an Envoy configuration with a listener and a cluster for each
// arm, made of what warmpath ships. All arms share one Envoy: two processes with
// the same configuration differ by some percent, by how their memory happens to
// lie.
//
// It differs from what is shipped in three points. The endpoints stand in it, for
// an Envoy has one control plane and here are several routers. Envoy waits longer
// for a router and for its health checks, because it must not pass over one that
// a saturated machine makes slow: the figures would be those of no router.
func bootstrap(admin string, places []place, endpoints []string) ([]byte, error) {
	var listeners, clusters []any
	for _, p := range places {
		listener, err := p.newListener()
		if err != nil {
			return nil, err
		}
		cluster, err := p.newCluster(endpoints)
		if err != nil {
			return nil, err
		}
		listeners, clusters = append(listeners, listener), append(clusters, cluster)
		if p.router != nothing {
			asked, err := p.newRouterCluster()
			if err != nil {
				return nil, err
			}
			clusters = append(clusters, asked)
		}
	}
	return json.Marshal(node{
		"admin":            node{"address": socketAddress(admin)},
		"static_resources": node{"listeners": listeners, "clusters": clusters},
	})
}

func (p place) clusterName() string { return "pool-" + p.name }
func (p place) routerName() string  { return "router-" + p.name }

func (p place) newListener() (node, error) {
	shipped, err := shippedBootstrap()
	if err != nil {
		return nil, err
	}
	listener, err := find(shipped, "static_resources", "listeners", 0)
	if err != nil {
		return nil, err
	}
	listener["name"], listener["address"] = p.name, socketAddress(p.listener)
	manager, err := find(listener, "filter_chains", 0, "filters", 0, "typed_config")
	if err != nil {
		return nil, err
	}
	manager["stat_prefix"] = p.name
	// The first is for other pools, which there are none of here.
	route, err := find(manager, "route_config", "virtual_hosts", 0, "routes", 1, "route")
	if err != nil {
		return nil, err
	}
	route["cluster"] = p.clusterName()
	filters, ok := manager["http_filters"].([]any)
	if !ok || len(filters) != 2 {
		return nil, fmt.Errorf("the shipped configuration has the filters %v: want ext_proc and router", manager["http_filters"])
	}
	if p.router == nothing {
		manager["http_filters"] = filters[1:]
		return listener, nil
	}
	extProc, err := find(manager, "http_filters", 0, "typed_config")
	if err != nil {
		return nil, err
	}
	extProc["message_timeout"] = "10s"
	extProc["grpc_service"] = node{"envoy_grpc": node{"cluster_name": p.routerName()}}
	return listener, nil
}

// newCluster is the shipped pool, or one with Envoy's own load balancing.
func (p place) newCluster(endpoints []string) (node, error) {
	var cluster node
	if err := yaml.Unmarshal(envoy.Cluster(), &cluster); err != nil {
		return nil, fmt.Errorf("the shipped cluster: %w", err)
	}
	delete(cluster, "eds_cluster_config")
	cluster["name"], cluster["type"] = p.clusterName(), "STATIC"
	cluster["load_assignment"] = loadAssignment(p.clusterName(), endpoints...)
	if p.policy != "" {
		delete(cluster, "load_balancing_policy")
		cluster["lb_policy"] = p.policy
	}
	return cluster, nil
}

// newRouterCluster is the shipped cluster of the ext_proc server.
func (p place) newRouterCluster() (node, error) {
	shipped, err := shippedBootstrap()
	if err != nil {
		return nil, err
	}
	cluster, err := find(shipped, "static_resources", "clusters", 0)
	if err != nil {
		return nil, err
	}
	if cluster["name"] != envoy.ExtProcCluster {
		return nil, fmt.Errorf("the shipped configuration's first cluster is %v: want %s", cluster["name"], envoy.ExtProcCluster)
	}
	check, err := find(cluster, "health_checks", 0)
	if err != nil {
		return nil, err
	}
	check["timeout"] = "10s"
	cluster["name"], cluster["load_assignment"] = p.routerName(), loadAssignment(p.routerName(), p.extProc)
	return cluster, nil
}

func shippedBootstrap() (shipped node, err error) {
	text, err := envoy.Bootstrap(envoy.Addresses{})
	if err == nil {
		err = yaml.Unmarshal(text, &shipped)
	}
	return shipped, err
}

// find goes down by the names of members and the indices of lists.
func find(from any, path ...any) (node, error) {
	at := from
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := at.(node)
			at = m[step]
		case int:
			list, _ := at.([]any)
			if step >= len(list) {
				return nil, fmt.Errorf("the shipped configuration has nothing at %v", path)
			}
			at = list[step]
		}
	}
	found, ok := at.(node)
	if !ok {
		return nil, fmt.Errorf("the shipped configuration has no object at %v", path)
	}
	return found, nil
}

func loadAssignment(cluster string, addresses ...string) node {
	var endpoints []any
	for _, a := range addresses {
		endpoints = append(endpoints, node{"endpoint": node{"address": socketAddress(a)}})
	}
	return node{"cluster_name": cluster, "endpoints": []any{node{"lb_endpoints": endpoints}}}
}

// socketAddress is of an address with a numeric port, as all here have.
func socketAddress(address string) node {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return node{"socket_address": node{"address": host, "port_value": n}}
}
