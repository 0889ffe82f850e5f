package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// listener is one address of the listen section on its way in.
type listener struct {
	name    string
	address *string
	// at is where the address was written; inert when it is the default.
	at strict.Value
}

func (l *Listen) decode(v strict.Value) {
	listeners := []*listener{
		{name: "extProc", address: &l.ExtProc}, {name: "xds", address: &l.XDS}, {name: "admin", address: &l.Admin},
	}
	fields := make([]strict.Field, len(listeners))
	for i, one := range listeners {
		fields[i] = strict.Field{Name: one.name, Decode: func(v strict.Value) {
			one.at = v
			decodeListener(v, one.address, one.name != "extProc")
		}}
	}
	fields = append(fields, strict.Field{Name: "socketMode", Decode: strict.Mode(&l.SocketMode, 0o600, 0o660, 0o666)})
	v.Fields(fields...)
	for i, later := range listeners {
		for _, earlier := range listeners[:i] {
			rejectCollision(later, earlier)
		}
	}
}

// rejectCollision blames the later of two listeners on one port or socket, unless only
// the earlier was written and met the other's default.
func rejectCollision(later, earlier *listener) {
	if !collide(*later.address, *earlier.address) {
		return
	}
	blamed, rival := later, earlier
	if !blamed.at.OK() {
		blamed, rival = earlier, later
	}
	blamed.at.Reject("takes the %s of listen.%s (%s)", kind(*rival.address), rival.name, *rival.address)
}

// decodeListener reads an address to serve on. The empty one means off, where
// that is allowed.
func decodeListener(v strict.Value, dst *string, optional bool) {
	// A refused address keeps no port, so that it collides with nothing.
	*dst = ""
	s, ok := v.Scalar("!!str", "an address such as 127.0.0.1:9002")
	switch {
	case !ok:
		return
	case s == "" && optional:
		return
	case strings.HasPrefix(s, unixPrefix):
		decodeSocket(v, s, dst)
		return
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		v.Reject("is not an address to serve on (want ip:port, localhost:port, :port or unix:/path)")
		return
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" {
		v.Reject("names a host, which may be another machine (want ip:port, localhost:port, :port or unix:/path)")
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		v.Reject("has no port (want a number, 0..65535)")
		return
	}
	*dst = s
}

// unixPrefix marks a Unix domain socket, before its path.
const unixPrefix = "unix:"

// maxSocketPath is what fits the address of a Unix socket on every system, in
// bytes; Linux has room for 107.
const maxSocketPath = 103

// decodeSocket reads unix: and a path.
func decodeSocket(v strict.Value, s string, dst *string) {
	path := strings.TrimPrefix(s, unixPrefix)
	switch {
	case !filepath.IsAbs(path):
		v.Reject("has no absolute path (want unix:/path)")
	case strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0):
		v.Reject("is not the path of a socket (want unix:/path)")
	case len(path) > maxSocketPath:
		v.Reject("has a path of %d bytes, more than a socket can have (want 1..%d)", len(path), maxSocketPath)
	default:
		*dst = unixPrefix + filepath.Clean(path)
	}
}

// kind names what two listeners cannot share.
func kind(address string) string {
	if strings.HasPrefix(address, unixPrefix) {
		return "socket"
	}
	return "port"
}

// Exposed reports whether others than this machine's processes can reach an
// address to serve on.
func Exposed(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if address == "" || strings.HasPrefix(address, unixPrefix) || err != nil {
		return false
	}
	ip, err := netip.ParseAddr(loopbackName(host))
	return err != nil || !ip.Unmap().IsLoopback()
}

// collide reports whether both addresses, valid or empty, want one port or socket.
func collide(a, b string) bool {
	if strings.HasPrefix(a, unixPrefix) {
		return a == b
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return everyInterface(hostA) || everyInterface(hostB) || loopbackName(hostA) == loopbackName(hostB)
}

func everyInterface(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

func loopbackName(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// decodeCollector reads the host:port of an OTLP collector, or "".
func decodeCollector(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", `host:port or ""`)
	if !ok {
		return
	}
	if strings.Contains(s, "://") {
		v.Reject("is a URL (want host:port, as OTLP over gRPC needs no path)")
		return
	}
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if s != "" && (err != nil || host == "" || portErr != nil || n == 0) {
		v.Reject(`is not the host:port of a collector (port 1..65535), nor ""`)
		return
	}
	*dst = s
}

// headerName is a field name of RFC 9110 in lower case, as HTTP/2 sends it.
var headerName = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$")

// decodeHeader reads the name of a request header, in any case.
func decodeHeader(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "the name of a request header")
	switch name := strings.ToLower(s); {
	case !ok:
	case !headerName.MatchString(name):
		v.Reject("is not the name of a request header (want 1..128 letters, digits and hyphens)")
	case strings.HasPrefix(name, "x-envoy-") || strings.HasPrefix(name, "x-gateway-destination-endpoint"):
		v.Reject("is a header of the proxy's own, which clients cannot set")
	default:
		*dst = name
	}
}

// clusterName leaves out what Envoy rewrites in the names of statistics.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`)

func decodeClusterName(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "a name (quote it)")
	if !ok {
		return
	}
	if !clusterName.MatchString(s) {
		v.Reject("is not a cluster name (want 1..60 letters, digits, dots, hyphens and underscores)")
		return
	}
	*dst = s
}
