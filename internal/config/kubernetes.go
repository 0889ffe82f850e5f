package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"

	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

// Kubernetes names a Service whose EndpointSlices are the membership.
type Kubernetes struct {
	// Service is never empty when this is the source.
	Service string `yaml:"service"`
	// Namespace is that of the Service; empty is the one that the process runs in.
	Namespace string `yaml:"namespace"`
	// Port is what [endpointslice.ParsePort] reads.
	Port string `yaml:"port"`
	// Terminating says what becomes of the endpoint of a pod that ends.
	Terminating Terminating `yaml:"terminating"`
	// APIServer is "https://host:port"; empty is the server of the cluster that
	// the process runs in, with the files of its ServiceAccount where TokenFile or
	// CAFile are empty. Elsewhere an empty TokenFile sends no token, and an empty
	// CAFile trusts the authorities of the system. Paths are as written: see
	// [Kubernetes.Paths].
	APIServer string `yaml:"apiServer"`
	TokenFile string `yaml:"tokenFile"`
	CAFile    string `yaml:"caFile"`
}

// Terminating is what becomes of an endpoint while its pod ends.
type Terminating string

// What an ending pod's endpoint does: it stays in Envoy and gets no new requests,
// or it is removed at once, as Istio does.
const (
	Drain Terminating = "drain"
	Gone  Terminating = "gone"
)

// Paths returns a copy whose files are relative to the folder of the
// configuration file no longer.
func (k Kubernetes) Paths(configPath string) Kubernetes {
	k.TokenFile, k.CAFile = beside(configPath, k.TokenFile), beside(configPath, k.CAFile)
	return k
}

// label is a name as Kubernetes takes it for Services and namespaces.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (k *Kubernetes) decode(v strict.Value) {
	k.Terminating = Drain
	hasService := false
	isMapping := v.Fields(
		strict.Field{Name: "service", Decode: func(v strict.Value) {
			hasService = true
			decodeLabel(v, &k.Service)
		}},
		strict.Field{Name: "namespace", Decode: func(v strict.Value) {
			if word, ok := v.Word(); !ok || word != "" {
				decodeLabel(v, &k.Namespace)
			}
		}},
		strict.Field{Name: "port", Decode: k.decodePort},
		strict.Field{Name: "terminating", Decode: strict.Enum(&k.Terminating, Drain, Gone)},
		strict.Field{Name: "apiServer", Decode: func(v strict.Value) { decodeAPIServer(v, &k.APIServer) }},
		strict.Field{Name: "tokenFile", Decode: strict.Path(&k.TokenFile)},
		strict.Field{Name: "caFile", Decode: strict.Path(&k.CAFile)},
	)
	if isMapping && !hasService {
		v.Report("service", "the name of the Service is missing")
	}
	if at, err := url.Parse(k.APIServer); err == nil && at.Scheme == "http" && k.TokenFile != "" {
		v.Report("tokenFile", "a token is not sent over plain http: want an apiServer of https, or no token")
	}
}

func decodeLabel(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "a name (quote it)")
	switch {
	case !ok:
	case !label.MatchString(s):
		v.Reject("is not a name of Kubernetes (want 1 to 63 of a-z, 0-9 and - within)")
	default:
		*dst = s
	}
}

func (k *Kubernetes) decodePort(v strict.Value) {
	word, isText := v.Word()
	if !isText {
		var number int
		strict.Int(&number, 1, 65535)(v)
		if number != 0 {
			k.Port = strconv.Itoa(number)
		}
		return
	}
	port, err := endpointslice.ParsePort(word)
	if err != nil {
		v.Reject("is not a port (want 1..65535 or the name of a port of the Service)")
		return
	}
	k.Port = port.String()
}

// decodeAPIServer reads where the API server is. Plain http is for a proxy on this
// machine, such as kubectl's.
func decodeAPIServer(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "the address of an API server")
	if !ok || s == "" {
		return
	}
	at, err := url.Parse(s)
	switch {
	case err != nil, at.Hostname() == "", at.User != nil, at.RawQuery != "", at.Fragment != "", at.Scheme != "https" && at.Scheme != "http":
		v.Reject("is not the address of an API server (want https://host:port)")
	case at.Scheme == "http" && !isLoopback(at.Hostname()):
		v.Reject("is plain http to another machine (want https)")
	default:
		*dst = s
	}
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
