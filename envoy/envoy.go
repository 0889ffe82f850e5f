// Package envoy holds the Envoy configuration that warmpath ships, embedded.
// The files are complete as they stand and are the one source for the
// documentation, the tests, the demo and the control plane.
package envoy

import (
	"cmp"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

//go:embed bootstrap.yaml
var bootstrap string

//go:embed cluster.yaml
var cluster string

// Names that the shipped configuration and the Go code have in common.
const (
	// PoolCluster is the cluster of the model servers; it comes by CDS.
	PoolCluster = "warmpath_pool"
	// ExtProcCluster is where Envoy asks for decisions.
	ExtProcCluster = "warmpath_ext_proc"
	// XDSCluster is where Envoy fetches the pool from.
	XDSCluster = "warmpath_xds"
	// ExtProcFilter is the filter's name, in the chain and in every per-route
	// override.
	ExtProcFilter = "warmpath.ext_proc"
	// BodyLimit is request_body_buffer_limit of the shipped route, in bytes.
	BodyLimit = 4 << 20
)

const shippedAdmin, shippedListener = "127.0.0.1:9901", "127.0.0.1:10000"

// Addresses are the places that [Bootstrap] names, each "host:port" or
// "[ipv6]:port". An empty one keeps the shipped address. Admin and Listener are
// bound, so they must be IP addresses; the other two may be host names, or "unix:"
// and the absolute path of a Unix domain socket.
type Addresses struct {
	Admin    string // shipped: 127.0.0.1:9901
	Listener string // shipped: 127.0.0.1:10000
	ExtProc  string // shipped: 127.0.0.1:9002
	XDS      string // shipped: 127.0.0.1:9003
}

// Bootstrap returns bootstrap.yaml with the given addresses in the place of the
// shipped ones, comments and all.
func Bootstrap(a Addresses) ([]byte, error) {
	replacements := []struct{ what, shipped, wanted, cluster string }{
		{"admin", shippedAdmin, a.Admin, ""},
		{"listener", shippedListener, a.Listener, ""},
		{"ext_proc", "127.0.0.1:9002", a.ExtProc, ExtProcCluster},
		{"xds", "127.0.0.1:9003", a.XDS, XDSCluster},
	}
	// All at once: an address wanted for one place may be the shipped one of another.
	pairs := make([]string, 0, 2*len(replacements))
	for _, r := range replacements {
		from, err := address(r.shipped, false)
		if err != nil {
			return nil, err
		}
		if n := strings.Count(bootstrap, from); n != 1 {
			return nil, fmt.Errorf("bootstrap.yaml: %q occurs %d times, want once", from, n)
		}
		if r.wanted == "" {
			continue
		}
		to, err := address(r.wanted, r.cluster != "")
		if host, _, _ := net.SplitHostPort(r.wanted); err == nil && r.cluster == "" && net.ParseIP(host) == nil {
			err = fmt.Errorf("%q: want an IP address: Envoy listens on nothing else", r.wanted)
		}
		if err != nil {
			return nil, fmt.Errorf("%s address: %w", r.what, err)
		}
		pairs = append(pairs, from, to)
		if isPipe(r.wanted) { // what needs no name resolution may not ask for it
			pairs = append(pairs, "name: "+r.cluster+"\n    type: STRICT_DNS", "name: "+r.cluster+"\n    type: STATIC")
		}
	}
	if listener, admin := cmp.Or(a.Listener, shippedListener), cmp.Or(a.Admin, shippedAdmin); overlap(listener, admin) {
		return nil, fmt.Errorf("listener address %q, admin address %q: want two: Envoy listens once at each", listener, admin)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(bootstrap)), nil
}

// overlap tells whether one process cannot listen at both addresses, "ip:port" each.
func overlap(a, b string) bool {
	one, err := netip.ParseAddrPort(a)
	two, also := netip.ParseAddrPort(b)
	if err != nil || also != nil || one.Port() != two.Port() {
		return false
	}
	first, second := one.Addr().Unmap(), two.Addr().Unmap()
	return first == second || first.Is4() == second.Is4() && (first.IsUnspecified() || second.IsUnspecified()) // Envoy's :: is IPv6 only
}

// Cluster returns cluster.yaml: an envoy.config.cluster.v3.Cluster with the
// pool's load balancing.
func Cluster() []byte { return []byte(cluster) }

const pipePrefix = "unix:"

func isPipe(s string) bool { return strings.HasPrefix(s, pipePrefix) }

// address renders "host:port" or "unix:/path" as the value of an address.
func address(s string, pipe bool) (string, error) {
	if !isPipe(s) {
		mapping, err := socketAddress(s)
		return "socket_address: " + mapping, err
	}
	path := strings.TrimPrefix(s, pipePrefix)
	if !pipe || !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("%q: want host:port, or for ext_proc and xds unix: and an absolute path", s)
	}
	return "pipe: {path: " + strconv.Quote(path) + "}", nil
}

// socketAddress renders "host:port" as the flow mapping that bootstrap.yaml uses.
func socketAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("%q: want host:port: %w", s, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("%q: port %q, want 1..65535", s, port)
	}
	if host == "" || strings.ContainsAny(host, "\"'{}, \t\n#") {
		return "", fmt.Errorf("%q: host %q, want an IP address or a host name", s, host)
	}
	host = scalar(host)
	if strings.Contains(host, ":") && host[0] != '"' {
		host = strconv.Quote(host) // not a string to every reader of YAML
	}
	return fmt.Sprintf("{address: %s, port_value: %d}", host, n), nil
}
