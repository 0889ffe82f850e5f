package xds

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/warmpath/warmpath/envoy"
)

// withOptions is the shipped cluster with options of its own.
var withOptions = string(envoy.Cluster()) + `
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    common_http_protocol_options: {idle_timeout: 7s, max_requests_per_connection: 9}
    explicit_http_config: {http2_protocol_options: {}}
`

// The limit is added to what the cluster has; without one, and with options that
// name a protocol, the rest stays.
func TestLimitConnections(t *testing.T) {
	for _, tt := range []struct {
		name     string
		template string
		n        uint32
		want     string
	}{
		{"no limit", string(envoy.Cluster()), 0, "none"},
		{"a limit", string(envoy.Cluster()), 1, "common_http_protocol_options:{max_requests_per_connection:{value:1}} explicit_http_config:{http_protocol_options:{}}"},
		{"no limit, options", withOptions, 0, "common_http_protocol_options:{idle_timeout:{seconds:7} max_requests_per_connection:{value:9}} explicit_http_config:{http2_protocol_options:{}}"},
		{"a limit, options", withOptions, 2, "common_http_protocol_options:{idle_timeout:{seconds:7} max_requests_per_connection:{value:2}} explicit_http_config:{http2_protocol_options:{}}"},
	} {
		c, err := NewCluster(Options{Cluster: []byte(tt.template), MaxRequestsPerConnection: tt.n})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := "none"
		if own := c.GetTypedExtensionProtocolOptions()[httpProtocolOptions]; own != nil {
			options := new(upstreamhttpv3.HttpProtocolOptions)
			if err := own.UnmarshalTo(options); err != nil {
				t.Fatal(err)
			}
			got = strings.Join(strings.Fields(options.String()), " ") // the library varies the blanks
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// With a limit of one Envoy opens a connection for each request.
func TestEnvoyKeepsTheLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    Options
		// Each of Envoy's two threads has connections of its own.
		least, most int64
	}{{"no limit", Options{}, 1, 2}, {"one", Options{MaxRequestsPerConnection: 1}, 20, 20}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)

			e := startEnvoy(t)
			s := serverOf(t, Observer{}, tt.o)
			e.control(s)
			address := strings.TrimPrefix(server.URL, "http://")
			publishSet(t, s, host(address))
			e.waitReady()
			e.waitHosts(address + " HEALTHY 1")
			for range 20 {
				if code, _, err := e.get("http://" + e.listener + "/"); err != nil || code != http.StatusOK {
					t.Fatalf("status %d, %v", code, err)
				}
			}
			if got := connections.Load(); got < tt.least || got > tt.most {
				t.Errorf("%d connections for 20 requests, want %d to %d", got, tt.least, tt.most)
			}
		})
	}
}
