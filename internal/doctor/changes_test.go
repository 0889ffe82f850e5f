package doctor_test

import "strings"

// What is shipped, in parts that are changed, and what they are changed to.
const (
	filterStart = "          - name: warmpath.ext_proc\n"
	router      = "          - name: envoy.filters.http.router\n"
	poolRoute   = "                  cluster: warmpath_pool\n"
	keepalive   = "http2_protocol_options: {connection_keepalive: {interval: 10s, timeout: 5s}}"
	previous    = `                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
`
	bufferedLine = "              - {request_body_mode: BUFFERED, response_header_mode: SEND, response_trailer_mode: SEND}\n"
	hashPolicy   = "                  hash_policy:\n                  - header: {header_name: x-amzn-sagemaker-prefix-aware-id}\n"
	removed      = "              - {remove: x-gateway-destination-endpoint}\n"
	partialLine  = "              - {request_body_mode: BUFFERED_PARTIAL, response_header_mode: SEND, response_trailer_mode: SEND}\n"
)

// another is a second ext_proc filter through which bodies pass.
const another = `          - name: another
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
              grpc_service: {envoy_grpc: {cluster_name: warmpath_xds}}
              processing_mode: {request_body_mode: STREAMED}
`

// anotherQuiet is one that reads headers only.
var anotherQuiet = strings.Replace(another, "STREAMED", "NONE", 1)

// whole is a filter that buffers bodies of up to 64 KiB.
const whole = `          - name: whole
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer
              max_request_bytes: 65536
`

// auth is one that buffers them for somebody who is asked.
const auth = `          - name: auth
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
              grpc_service: {envoy_grpc: {cluster_name: warmpath_xds}}
              with_request_body: {max_request_bytes: 8192}
`

// Types of what a route has of its own for a filter.
const (
	ofExtProc = "envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute"
	ofBuffer  = "envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
	ofAuth    = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute"
	ofAny     = "envoy.config.route.v3.FilterConfig"
)

// on gives the pool's route settings of its own for a filter.
func on(filter, kind, settings string) string {
	return route + "                typed_per_filter_config:\n                  " + filter + ":\n" +
		`                    "@type": type.googleapis.com/` + kind + "\n                    " + settings + "\n"
}

// onHost gives the virtual host settings for warmpath's filter, and the pool's route others.
func onHost(kind, settings, routeKind, routeSettings string) func(string) string {
	const host = "            - name: llm\n"
	return strings.NewReplacer(host, host+`              typed_per_filter_config: {warmpath.ext_proc: {"@type": type.googleapis.com/`+kind+", "+settings+"}}\n", route, on("warmpath.ext_proc", routeKind, routeSettings)).Replace
}

// perRoute is that for warmpath's filter.
func perRoute(settings string) string { return on("warmpath.ext_proc", ofExtProc, settings) }

// picked is a filter that writes a header to where the choice is read.
func picked(header string) string {
	return `          - name: pick
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config
              request_rules: [{header: ` + header + `, on_header_present: {metadata_namespace: envoy.lb, key: x-gateway-destination-endpoint, type: STRING}}]
`
}

// pickedByBody is one that writes what the body says.
const pickedByBody = `          - name: pick
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata
              request_rules: {rules: [{selectors: [{key: pick}], on_present: {metadata_namespace: envoy.lb, key: x-gateway-destination-endpoint}}]}
`

// switchedOff is a filter that is disabled where no route switches it on.
func switchedOff(filter string) string {
	return strings.Replace(filter, "            typed_config:\n", "            disabled: true\n            typed_config:\n", 1)
}

const route = "              - name: pool\n"

// with is two changes of what is shipped: before another text stands a filter, and the
// pool's route has settings for it.
func with(filter, before, settings string) func(string) string {
	return strings.NewReplacer(before, filter+before, route, settings).Replace
}

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// ofPool gives the cluster of the model servers HttpProtocolOptions of its own.
func ofPool(options string) string {
	return poolStart + "    typed_extension_protocol_options: {" + httpOptions + `: {"@type": type.googleapis.com/` + httpOptions + ", explicit_http_config: {http_protocol_options: {}}, " + options + "}}\n"
}

const poolStart = "  - name: warmpath_pool\n"

// notSame is what a retry policy needs not to fall on the same server.
const notSame = `retry_host_predicate: [{name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}}]`

const policies = "    load_balancing_policy:\n      policies:\n"

// weighted has half of the pool's requests go elsewhere.
func weighted(other string) string {
	return "                  weighted_clusters: {clusters: [{name: warmpath_pool, weight: 50}, " + other + "]}\n"
}

// ownOfFilter are settings of warmpath's filter in a line.
func ownOfFilter(settings string) string {
	return `typed_per_filter_config: {warmpath.ext_proc: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute, ` + settings + "}}"
}

// withoutPolicy makes the pool's cluster one of a type, with options in place of its policy.
func withoutPolicy(kind, options string) func(string) string {
	return func(text string) string {
		before, after, _ := strings.Cut(text, "    load_balancing_policy:\n")
		_, rest, _ := strings.Cut(after, "hash_balance_factor: 125}\n")
		lb := map[string]string{"STATIC": "ROUND_ROBIN", "ORIGINAL_DST": "CLUSTER_PROVIDED"}[kind]
		return strings.Replace(before, "    type: STATIC\n", "    type: "+kind+"\n", 1) + "    lb_policy: " + lb + "\n" + options + rest
	}
}
