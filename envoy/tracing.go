package envoy

import (
	"fmt"
	"regexp"
	"strings"
)

// tracing is the block of bootstrap.yaml that has Envoy trace, as a comment.
var tracing = regexp.MustCompile(`(?m)^ *# tracing:\n(?: *# .*\n)+`)

var commentSign = regexp.MustCompile(`(?m)^( *)# `)

// OTLPCluster is the collector's cluster in what [WithTracing] returns.
const OTLPCluster = "otlp"

const otlpCluster = `  # The collector of the traces, OTLP over gRPC.
  - name: ` + OTLPCluster + `
    type: STRICT_DNS
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options: {connection_keepalive: {interval: 10s, timeout: 5s}}
    load_assignment:
      cluster_name: ` + OTLPCluster + `
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {`

// WithTracing does what the comment of bootstrap.yaml tells its readers to do, in
// what [Bootstrap] returned: it uncomments the tracing and adds the cluster of an
// OTLP/gRPC collector, "host:port".
func WithTracing(bootstrap []byte, collector string) ([]byte, error) {
	at, err := address(collector, false)
	if err != nil {
		return nil, fmt.Errorf("collector of the Envoy configuration: %w", err)
	}
	text := string(bootstrap)
	const clusters = "\n  clusters:\n"
	if blocks, lists := len(tracing.FindAllString(text, -1)), strings.Count(text, clusters); blocks != 1 || lists != 1 {
		return nil, fmt.Errorf("bootstrap.yaml: %d commented tracing blocks and %d lists of clusters, want one each", blocks, lists)
	}
	text = tracing.ReplaceAllStringFunc(text, func(block string) string { return commentSign.ReplaceAllString(block, "$1") })
	return []byte(strings.Replace(text, clusters, clusters+otlpCluster+at+"}}\n\n", 1)), nil
}
