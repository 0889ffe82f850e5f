package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
)

// node is a part of Envoy's configuration.
type node = map[string]any

// plainBootstrap is the Envoy that knows nothing of prefixes: the same servers, round
// robin. It closes connections as the other one does.
func plainBootstrap(admin, listener string, servers []string) ([]byte, error) {
	var endpoints []any
	for _, address := range servers {
		endpoints = append(endpoints, node{"endpoint": node{"address": socketAddress(address)}})
	}
	manager := node{
		"@type":       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "llm",
		"route_config": node{
			"response_headers_to_add": []any{node{"header": node{"key": replicaHeader, "value": servedBy}}},
			"virtual_hosts": []any{node{"name": "llm", "domains": []any{"*"}, "routes": []any{node{
				"match": node{"prefix": "/"}, "route": node{"cluster": "pool", "timeout": "0s"},
			}}}},
		},
		"http_filters": []any{node{
			"name":         "envoy.filters.http.router",
			"typed_config": node{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
		}},
	}
	return json.Marshal(node{
		"admin": node{"address": socketAddress(admin)},
		"static_resources": node{
			"listeners": []any{node{
				"name": "llm", "address": socketAddress(listener),
				"filter_chains": []any{node{"filters": []any{node{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}},
			}},
			"clusters": []any{node{
				"name": "pool", "type": "STATIC", "lb_policy": "ROUND_ROBIN", "connect_timeout": "1s",
				"typed_extension_protocol_options": node{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": node{
					"@type":                        "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
					"common_http_protocol_options": node{"max_requests_per_connection": 1},
					"explicit_http_config":         node{"http_protocol_options": node{}},
				}},
				"load_assignment": node{"cluster_name": "pool", "endpoints": []any{node{"lb_endpoints": endpoints}}},
			}},
		},
	})
}

func socketAddress(address string) node {
	host, port, _ := net.SplitHostPort(address) // made by this program
	n, _ := strconv.Atoi(port)
	return node{"socket_address": node{"address": host, "port_value": n}}
}

// The response header that tells who served, which Envoy adds.
const (
	replicaHeader = "x-replica"
	servedBy      = "%UPSTREAM_HOST%"
)

// withReplicaHeader has the shipped Envoy tell who served.
func withReplicaHeader(bootstrap []byte) ([]byte, error) {
	const routes = "          route_config:\n            name: llm\n"
	if n := bytes.Count(bootstrap, []byte(routes)); n != 1 {
		return nil, fmt.Errorf("the shipped bootstrap has %d times %q: want once", n, routes)
	}
	added := routes + `            response_headers_to_add: [{header: {key: ` + replicaHeader + `, value: "` + servedBy + `"}}]` + "\n"
	return bytes.Replace(bootstrap, []byte(routes), []byte(added), 1), nil
}

// plainEnvoy is Envoy alone.
type plainEnvoy struct {
	process *stack.Process
	url     string
}

func startPlainEnvoy(ctx context.Context, binary, dir string, servers []string) (*plainEnvoy, error) {
	const host = "127.71.1.1"
	var ports [2]string
	for i := range ports {
		port, err := stack.FreePort(host)
		if err != nil {
			return nil, err
		}
		ports[i] = fmt.Sprintf("%s:%d", host, port)
	}
	bootstrap, err := plainBootstrap(ports[0], ports[1], servers)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "plain.json")
	if err := os.WriteFile(path, bootstrap, 0o600); err != nil {
		return nil, err
	}
	p, err := stack.StartProcess("envoy", nil, binary, "-c", path, "--concurrency", "2", "-l", "warning", "--disable-hot-restart")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Await(ctx, func() error { return expectOK(ctx, "http://"+ports[0]+"/ready") }); err != nil {
		p.Kill()
		return nil, err
	}
	return &plainEnvoy{p, "http://" + ports[1]}, nil
}
