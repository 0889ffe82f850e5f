package envoy_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
)

func TestBootstrapAsShipped(t *testing.T) {
	got, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{envoy.PoolCluster, envoy.ExtProcCluster, envoy.XDSCluster, "name: " + envoy.ExtProcFilter, "request_body_buffer_limit: 4194304"} {
		if !bytes.Contains(got, []byte(name)) {
			t.Errorf("bootstrap.yaml does not contain %q", name)
		}
	}
	if envoy.BodyLimit != 4194304 {
		t.Errorf("BodyLimit = %d, the route has 4194304", envoy.BodyLimit)
	}
	if !bytes.Contains(envoy.Cluster(), []byte("name: "+envoy.PoolCluster+"\n")) {
		t.Errorf("cluster.yaml does not name %s", envoy.PoolCluster)
	}
}

func TestBootstrapReplacesEveryAddress(t *testing.T) {
	// Swapped on purpose: replacing one after the other would undo itself.
	got, err := envoy.Bootstrap(envoy.Addresses{
		Admin: "127.0.0.1:9002", Listener: "[::1]:80", ExtProc: "127.0.0.1:9901", XDS: "warmpath:9003",
	})
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	before, after := strings.Split(string(shipped), "\n"), strings.Split(string(got), "\n")
	for i := range before {
		if before[i] != after[i] {
			changed = append(changed, strings.TrimSpace(after[i]))
		}
	}
	want := []string{
		`address: {socket_address: {address: 127.0.0.1, port_value: 9002}}`,
		`address: {socket_address: {address: "::1", port_value: 80}}`,
		`- endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}`,
		`- endpoint: {address: {socket_address: {address: warmpath, port_value: 9003}}}`,
	}
	if strings.Join(changed, "\n") != strings.Join(want, "\n") {
		t.Errorf("changed lines:\n%s\nwant:\n%s", strings.Join(changed, "\n"), strings.Join(want, "\n"))
	}
}

// Only what Envoy connects to can be a Unix socket, and needs a cluster that does
// not resolve names.
func TestBootstrapWithUnixSockets(t *testing.T) {
	got, err := envoy.Bootstrap(envoy.Addresses{XDS: "unix:/run/xds.sock"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`address: {pipe: {path: "/run/xds.sock"}}`,
		"name: warmpath_xds\n    type: STATIC",
		"name: warmpath_ext_proc\n    type: STRICT_DNS",
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for what, a := range map[string]envoy.Addresses{"admin": {Admin: "unix:/a"}, "listener": {Listener: "unix:/a"}} {
		if _, err := envoy.Bootstrap(a); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s on a Unix socket: %v", what, err)
		}
	}
}

func TestWithTLSRefuses(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	good := envoy.TLS{ServerName: "a", CA: "b/ca", Cert: "b/cert", Key: "b/key", CASecret: "./c", CertSecret: "./d"}
	if _, err := envoy.WithTLS(shipped, good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*envoy.TLS){
		"the key is missing":         func(t *envoy.TLS) { t.Key = "" },
		"the server name is missing": func(t *envoy.TLS) { t.ServerName = "" },
		"want ./c":                   func(t *envoy.TLS) { t.CASecret = "c" },
		"not in one folder":          func(t *envoy.TLS) { t.Key = "key" },
	} {
		tls := good
		change(&tls)
		if _, err := envoy.WithTLS(shipped, tls); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", tls, err, want)
		}
		if _, _, err := tls.Secrets(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("secrets of %+v: %v, want %q", tls, err, want)
		}
	}
	if _, err := envoy.WithTLS([]byte("static_resources:\n"), good); err == nil {
		t.Error("a configuration without the clusters is accepted")
	}
}

func TestBootstrapRefusesAddresses(t *testing.T) {
	for _, tt := range []struct{ address, want string }{
		{"127.0.0.1", "want host:port"},
		{"127.0.0.1:0", "want 1..65535"},
		{"127.0.0.1:65536", "want 1..65535"},
		{":9003", "want an IP address or a host name"},
		{"a} #:9003", "want an IP address or a host name"},
		{"unix:xds.sock", "an absolute path"},
	} {
		_, err := envoy.Bootstrap(envoy.Addresses{XDS: tt.address})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "xds") {
			t.Errorf("Bootstrap(XDS: %q) = %v, want an error with %q that names xds", tt.address, err, tt.want)
		}
	}
}

// Envoy cannot listen at one address for both.
func TestBootstrapRefusesOneAddressTwice(t *testing.T) {
	for _, a := range []envoy.Addresses{
		{Listener: "127.0.0.1:9901"},
		{Admin: "127.0.0.1:10000"},
		{Listener: "[::1]:80", Admin: "[0::1]:80"},
		{Listener: "0.0.0.0:9901"},
		{Listener: "[::1]:80", Admin: "[::]:80"},
		{Listener: "127.0.0.1:80", Admin: "[::ffff:127.0.0.1]:80"},
	} {
		if _, err := envoy.Bootstrap(a); err == nil || !strings.Contains(err.Error(), "want two") {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for _, a := range []envoy.Addresses{
		{Listener: "10.0.0.1:9901", ExtProc: "127.0.0.1:9901"},
		{Listener: "10.0.0.1:80", Admin: "[::]:80"}, // which Envoy opens for IPv6 alone
	} {
		if _, err := envoy.Bootstrap(a); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestWithTracingRefuses(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	traced, err := envoy.WithTracing(shipped, "127.0.0.1:4317")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config    []byte
		collector string
		want      string
	}{
		"no port":          {shipped, "otel", `"otel": want host:port`},
		"a socket":         {shipped, "unix:/run/otel.sock", "unix:/run/otel.sock"},
		"traced already":   {traced, "127.0.0.1:4317", "0 commented tracing blocks"},
		"not what we ship": {[]byte("static_resources:\n"), "127.0.0.1:4317", "0 lists of clusters"},
	} {
		if _, err := envoy.WithTracing(tt.config, tt.collector); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tt.want)
		}
	}
}
