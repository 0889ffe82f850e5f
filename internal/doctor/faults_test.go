package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// own has the cluster of the model servers in the file, steered by metadata; byHeader by
// a header.
var (
	own      = envoy.Options{Endpoints: []string{"10.0.0.1:8000", "10.0.0.2:8000"}}
	byHeader = envoy.Options{Endpoints: own.Endpoints, HeaderSteering: true}
)

// fault is one small change of what is shipped, by which exactly one rule finds something.
type fault struct {
	id   string
	base envoy.Options
	// from is replaced by to, each time that it occurs.
	from, to string
	// change is another change than that.
	change func(string) string
	setup  func(*doctor.Setup)
}

func known(s *doctor.Setup) { s.Known = true }

// listening says where warmpath listens.
func listening(extProc, xds string) func(*doctor.Setup) {
	return func(s *doctor.Setup) { s.Known, s.ExtProc, s.XDS = true, extProc, xds }
}

var faults = []fault{
	{id: "unknown", from: "failure_mode_allow: true", to: "failure_mode_allow: true\n              failure_mode_alow: true"},
	{id: "unknown", from: "failure_mode_allow: true", to: "failure_mode_allow: true\n              of_tomorrow: true\n              of_the_day_after: {a: 1}"},
	{id: "unknown", from: "node: {", to: "mine: !ignore {a: 1}\nnode: {"}, // the tag belongs to the key
	{id: "filter-off", from: route, to: perRoute("disabled: true")},
	{id: "filter-off", base: own, from: filterStart, to: filterStart + "            disabled: true\n"},
	{id: "filter-off", base: own, from: route, to: perRoute("overrides: {processing_mode: {request_header_mode: SKIP, response_header_mode: SKIP}}")},
	{id: "filter-off", base: own, from: poolRoute, to: weighted("{name: warmpath_pool, weight: 50, " + ownOfFilter("disabled: true") + "}")},
	{id: "filter-off", base: own, change: onHost(ofExtProc, "disabled: true", ofAny, "config: {}")}, // Envoy runs it, and it does nothing
	{id: "filter-elsewhere", base: own, from: route, to: "              - {name: models, match: {path: /v1/models}, route: {cluster: warmpath_ext_proc, timeout: 5s}}\n" + route},
	{id: "filter-name", from: "- name: warmpath.ext_proc", to: "- name: envoy.filters.http.ext_proc"},
	{id: "asked-twice", base: own, from: router, to: strings.Replace(anotherQuiet, "warmpath_xds", "warmpath_ext_proc", 1) + router},
	{id: "asked-twice", base: own, from: router, to: anotherQuiet + "              metadata_options: {receiving_namespaces: {untyped: [envoy.lb]}}\n" + router},
	{id: "asked-twice", base: own, change: with(anotherQuiet, router, on("another", ofExtProc, "overrides: {grpc_service: {envoy_grpc: {cluster_name: warmpath_ext_proc}}}"))},
	{id: "processor-before", from: filterStart, to: another + filterStart},
	{id: "processor-before", from: filterStart, to: anotherQuiet + "              allow_mode_override: true\n" + filterStart},
	{id: "processor-before", change: with(anotherQuiet, filterStart, on("another", ofExtProc, "overrides: {processing_mode: {request_body_mode: STREAMED}}"))},
	{id: "processor-after", from: router, to: another + router},
	{id: "compressor-after", from: router, to: `          - name: zip
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor
              compressor_library: {name: gzip, typed_config: {"@type": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip}}
` + router},
	{id: "buffer-filter", from: filterStart, to: whole + filterStart},
	{id: "buffer-filter", change: with(strings.Replace(whole, "65536", "8388608", 1), filterStart, on("whole", ofBuffer, "buffer: {max_request_bytes: 1000}"))},
	{id: "buffer-filter", change: with(switchedOff(whole), filterStart, on("whole", ofAny, "config: {}"))},
	{id: "buffer-filter", from: filterStart, to: auth + filterStart},
	{id: "buffer-filter", change: with(strings.Replace(auth, "8192", "8388608", 1), filterStart, on("auth", ofAuth, "check_settings: {with_request_body: {max_request_bytes: 1000}}"))},
	{id: "fails-closed", from: "failure_mode_allow: true", to: "failure_mode_allow: false"},
	{id: "fails-closed", from: "              failure_mode_allow: true\n", to: ""},
	{id: "fails-closed", from: route, to: perRoute("overrides: {failure_mode_allow: false}")},
	{id: "fails-closed", base: own, from: poolRoute, to: weighted("{name: warmpath_pool, weight: 50, " + ownOfFilter("overrides: {failure_mode_allow: false}") + "}")},
	{id: "observes-only", from: "failure_mode_allow: true", to: "failure_mode_allow: true\n              observability_mode: true"},
	{id: "message-timeout", from: "message_timeout: 0.25s", to: "message_timeout: 10s"},
	{id: "message-timeout", from: "              message_timeout: 0.25s\n", to: ""},
	{id: "no-metadata", from: "untyped: [envoy.lb, warmpath]", to: "untyped: [warmpath]"},
	{id: "no-metadata", from: route, to: perRoute("overrides: {metadata_options: {receiving_namespaces: {untyped: [warmpath]}}}")},
	{id: "no-retries", from: "              mutation_rules: {allow_envoy: true} # x-envoy-retry-on and x-envoy-max-retries\n", to: ""},
	{id: "no-retries", base: own, from: "{allow_envoy: true}", to: "{allow_envoy: true, disallow_all: true}"},
	{id: "no-retries", from: "{allow_envoy: true}", to: `{allow_envoy: true, disallow_expression: {regex: "x-envoy-.*"}}`},
	{id: "mutations-fail", from: "{allow_envoy: true}", to: "{disallow_is_error: true}"},
	{id: "mutations-fail", from: "{allow_envoy: true}", to: `{allow_envoy: true, disallow_is_error: true, disallow_expression: {regex: "x-envoy-.*"}}`},
	{
		id: "mutations-fail", from: "{allow_envoy: true}", to: `{disallow_is_error: true, disallow_all: true}`,
		setup: func(s *doctor.Setup) { s.Retries = false },
	},
	{id: "steering-refused", base: byHeader, from: "{allow_envoy: true}", to: `{allow_envoy: true, disallow_expression: {regex: "x-gateway-.*"}}`},
	{id: "steering-refused", from: "{allow_envoy: true}", to: `{allow_envoy: true, disallow_expression: {regex: "x-warmpath-.*"}}`},
	{id: "headers-withheld", from: "failure_mode_allow: true", to: `failure_mode_allow: true
              forward_rules: {allowed_headers: {patterns: [{prefix: "content-"}, {exact: ":path"}]}}`},
	{id: "served-unseen", from: "response_attributes: [upstream.address, ", to: "response_attributes: ["},
	{id: "route-kept", from: "failure_mode_allow: true", to: "failure_mode_allow: true\n              route_cache_action: RETAIN"},
	{id: "no-request-headers", from: "request_header_mode: SEND\n                #", to: "request_header_mode: SKIP\n                #"},
	{id: "body-streamed", from: "request_body_mode: NONE\n", to: "request_body_mode: STREAMED\n"},
	{id: "body-streamed", from: "request_body_mode: NONE\n", to: "request_body_mode: streamed\n"},
	{id: "body-streamed", from: "request_body_mode: NONE\n", to: "request_body_mode: \"1\"\n"},
	{id: "body-partial", from: "request_body_mode: NONE\n", to: "request_body_mode: BUFFERED_PARTIAL\n"},
	{id: "body-full-duplex", from: "request_body_mode: NONE\n", to: "request_body_mode: FULL_DUPLEX_STREAMED\n                request_trailer_mode: SEND\n"},
	{id: "body-buffered", from: "request_body_mode: NONE\n", to: "request_body_mode: BUFFERED\n"},
	{id: "body-never", from: bufferedLine, to: ""},
	{id: "body-never", from: "allow_mode_override: true", to: "allow_mode_override: false"},
	{id: "body-never", from: "{request_body_mode: BUFFERED, response_header_mode: SEND, ", to: "{request_body_mode: BUFFERED, request_trailer_mode: SEND, response_header_mode: SEND, "},
	{id: "no-response-headers", from: "response_header_mode: SEND        #", to: "response_header_mode: SKIP        #"},
	{id: "no-trailers", from: "                response_trailer_mode: SEND\n", to: ""},
	{id: "no-trailers", from: route, to: perRoute("overrides: {processing_mode: {request_header_mode: SEND, response_header_mode: SEND}}")},
	{id: "response-body", from: "response_body_mode: NONE          #", to: "response_body_mode: STREAMED          #"},
	{id: "no-inspection", from: "              - {request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND}\n", to: ""},

	{id: "client-steers", base: byHeader, from: "              - {remove: x-gateway-destination-endpoint}\n", to: ""},
	{id: "client-steers", from: router, to: picked("x-pick") + router},
	{id: "client-steers", base: own, from: filterStart, to: picked("x-pick") + filterStart},
	{id: "client-steers", base: own, from: filterStart, to: pickedByBody + filterStart},
	{id: "client-steers", base: own, change: with(strings.Replace(picked("x-pick"), "envoy.lb", "mine", 1), filterStart, on("pick", "envoy.extensions.filters.http.header_to_metadata.v3.Config", "request_rules: [{cookie: pick, on_header_present: {metadata_namespace: envoy.lb, key: x-gateway-destination-endpoint}}]"))},
	{id: "client-pool", from: "              - {remove: x-warmpath-pool}\n", to: ""},
	{id: "client-pool", base: own, from: poolRoute, to: weighted("{cluster_header: x-where, weight: 50}")},
	{id: "client-headers", from: "              - {remove: x-envoy-retry-on}\n              - {remove: x-envoy-retry-grpc-on}\n", to: ""},
	{id: "client-headers", from: "              - {remove: x-envoy-retry-on}\n", to: "              - {remove_on_match: {key_matcher: {exact: X-Envoy-Retry-On}}}\n"},
	{id: "steering-removed", base: byHeader, from: route, to: route + "                request_headers_to_remove: [X-Gateway-Destination-Endpoint]\n"},
	{id: "choice-leaks", from: "                request_headers_to_remove: [x-gateway-destination-endpoint]\n", to: ""},

	{id: "route-timeout", from: poolRoute + "                  timeout: 0s ", to: poolRoute + "                  #"},
	{id: "route-timeout", from: poolRoute + "                  timeout: 0s", to: poolRoute + "                  timeout: 60s"},
	{id: "route-timeout", from: poolRoute, to: poolRoute + "                  max_stream_duration: {max_stream_duration: 30s}\n"},
	{id: "route-timeout", from: "num_retries: 2", to: "num_retries: 2\n                    per_try_timeout: 30s"},
	{id: "route-timeout", from: "          codec_type: AUTO", to: "          common_http_protocol_options: {max_stream_duration: 120s}\n          codec_type: AUTO"},
	{id: "route-timeout", base: own, from: poolStart, to: ofPool("common_http_protocol_options: {max_stream_duration: 30s}")},
	{id: "route-timeout", base: own, from: poolStart, to: ofPool("retry_policy: {per_try_timeout: 30s, " + notSame + "}")},
	{id: "route-timeout", base: own, from: poolStart, to: poolStart + "    common_http_protocol_options: {max_stream_duration: 30s}\n"},
	{id: "idle-timeout", from: "          stream_idle_timeout: 3600s\n", to: ""},
	{id: "idle-timeout", from: poolRoute, to: poolRoute + "                  idle_timeout: 30s\n"},
	{id: "idle-timeout", base: own, from: "num_retries: 2", to: "num_retries: 2\n                    per_try_idle_timeout: 10s"},
	{id: "idle-timeout", base: own, from: poolStart, to: ofPool("retry_policy: {per_try_idle_timeout: 30s, " + notSame + "}")},
	{id: "request-timeout", from: "request_timeout: 300s", to: "request_timeout: 5s"},
	{id: "body-limit", base: own, from: "                request_body_buffer_limit: 4194304\n", to: ""},
	{id: "body-limit", base: own, from: "                request_body_buffer_limit: 4194304\n", to: "                per_request_buffer_limit_bytes: 32768\n"},
	{id: "body-limit", setup: func(s *doctor.Setup) { s.BodyLimit = 8 << 20 }},
	{id: "body-limit-unused", setup: func(s *doctor.Setup) { s.Known, s.BodyLimit = true, 1<<20 }},
	{id: "retry-static", from: poolRoute, to: poolRoute, base: own}, // changed below
	{id: "retry-static", base: own, from: poolStart, to: ofPool("retry_policy: {retry_on: 5xx, " + notSame + "}")},
	{id: "retry-static", base: byHeader, from: poolStart, to: ofPool("retry_policy: {retry_on: 5xx, " + notSame + "}")},
	{id: "retry-duplicates", base: own, change: strings.NewReplacer(bufferedLine, bufferedLine+partialLine, poolStart, ofPool("retry_policy: {retry_on: 5xx, "+notSame+"}")).Replace},
	{id: "retry-duplicates", from: bufferedLine, to: bufferedLine + partialLine},
	{id: "same-host-retried", base: own, from: previous, to: ""},
	{id: "same-host-retried", base: own, from: poolStart, to: ofPool("retry_policy: {num_retries: 2}")},
	{
		id: "same-host-retried", base: own,
		change: strings.NewReplacer(poolStart, ofPool("retry_policy: {num_retries: 2}"), poolRoute, "                  cluster_header: x-where\n", removed, removed+"              - {remove: x-where}\n").Replace,
	},
	{id: "no-hash", base: own, from: hashPolicy, to: ""},
	{id: "other-tenant-header", base: own, setup: func(s *doctor.Setup) { s.TenantHeader = "x-tenant" }},
	{id: "other-tenant-header", base: own, from: poolStart, to: ofPool("hash_policy: [{header: {header_name: x-tenant}}]")},
	{id: "cluster-unknown", base: own, from: poolRoute, to: "                  weighted_clusters: {clusters: [{name: warmpath_pool, weight: 1}, {name: gone, weight: 1}]}\n"},
	{id: "clusters-validated", from: "            validate_clusters: false\n", to: ""},

	{id: "no-override-host", base: own, change: withoutPolicy("STATIC", ""), setup: known},
	{id: "no-override-host", base: own, from: policies, to: policies + "      - typed_extension_config: {name: first, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}\n", setup: known},
	{id: "other-source", base: own, from: "metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}\n            selected", to: "metadata: {key: envoy.other, path: [{key: x-gateway-destination-endpoint}]}\n            selected"},
	{id: "no-fallback", base: own, from: "fallback_policy:", to: "# fallback_policy:"},
	{id: "any-address", base: own, from: "    type: STATIC\n", to: "    type: ORIGINAL_DST\n    original_dst_lb_config: {use_http_header: true}\n"},
	{id: "any-address", base: own, change: withoutPolicy("ORIGINAL_DST", "    original_dst_lb_config: {metadata_key: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}}\n")},
	{id: "no-override-host", base: own, change: withoutPolicy("ORIGINAL_DST", ""), setup: known},
	{id: "one-address", base: own, from: "    type: STATIC\n", to: "    type: LOGICAL_DNS\n"},
	{id: "locality", base: own, from: "common_lb_config: {healthy_panic_threshold: {value: 0}}", to: "common_lb_config: {healthy_panic_threshold: {value: 0}, locality_weighted_lb_config: {}}"},
	{id: "pool-breakers", base: own, from: "{max_requests: 100000, max_connections: 100000, max_pending_requests: 100000, max_retries: 100000}", to: "{max_requests: 1024, max_retries: 100000}"},
	{
		id: "pool-breakers", base: own, from: poolRoute, to: poolRoute + "                  priority: HIGH\n",
		setup: func(s *doctor.Setup) { s.Retries = false },
	},
	{id: "hedged", base: own, from: poolRoute, to: poolRoute + "                  hedge_policy: {hedge_on_per_try_timeout: true}\n"},
	{id: "hedged", base: own, from: "            - name: llm\n", to: "            - name: llm\n              hedge_policy: {hedge_on_per_try_timeout: true}\n"},
	{id: "mirrored", base: own, from: poolRoute, to: poolRoute + "                  request_mirror_policies: [{cluster: warmpath_ext_proc}, {cluster: warmpath_pool}]\n"},
	{id: "mirrored", base: own, from: poolStart, to: ofPool("request_mirror_policies: [{cluster: warmpath_pool}]")},
	{id: "mirrored", base: own, from: "          route_config:\n", to: "          route_config:\n            request_mirror_policies: [{cluster: warmpath_pool}]\n"},
	{id: "retry-breaker", base: own, from: ", max_retries: 100000}", to: "}"},
	{id: "pool-breakers", base: own, from: ", max_retries: 100000}\n", to: ", max_retries: 100000}\n      per_host_thresholds: [{max_connections: 10}]\n"},
	{id: "locality", base: own, from: poolStart, to: poolStart + "    lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [a]}]}\n"},
	{
		id: "no-override-host", base: own, setup: known, from: poolStart,
		to: poolStart + `    cluster_type: {name: envoy.clusters.aggregate, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [parts]}}` +
			"\n    lb_policy: CLUSTER_PROVIDED\n    connect_timeout: 1s\n  - name: parts\n",
	},
	{id: "pool-panic", base: own, from: "common_lb_config: {healthy_panic_threshold: {value: 0}}", to: "common_lb_config: {}"},
	{id: "removed-stays", base: own, from: "    type: STATIC\n", to: "    type: STRICT_DNS\n    health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /health}}]\n"},
	{id: "closing-engine", base: own, setup: func(s *doctor.Setup) { s.ClosingEngine = true }},
	{id: "members-missing", base: own, setup: func(s *doctor.Setup) {
		s.Known, s.Members = true, []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"}
	}},
	{id: "members-idle", base: own, setup: func(s *doctor.Setup) { s.Known, s.Members = true, []string{"10.0.0.1:8000"} }},

	{id: "address-twice", base: own, from: "address: \"10.0.0.2\"", to: "address: \"10.0.0.1\""},

	{id: "ext-proc-unknown", from: "{cluster_name: warmpath_ext_proc}", to: "{cluster_name: warmpath_extproc}"},
	{id: "ext-proc-unknown", base: own, from: route, to: perRoute("overrides: {grpc_service: {envoy_grpc: {cluster_name: nowhere}}}")},
	{id: "ext-proc-http1", base: own, from: keepalive, to: "http_protocol_options: {}"},
	{id: "ext-proc-breakers", base: own, from: "thresholds: [{max_requests: 100000, max_connections: 100000, max_pending_requests: 100000}]", to: "thresholds: []"},
	{id: "ext-proc-health", from: "grpc_health_check: {}", to: "tcp_health_check: {}"},
	{id: "ext-proc-health", from: "unhealthy_threshold: 1", to: "unhealthy_threshold: 20"},
	{id: "ext-proc-service", from: "grpc_health_check: {}", to: "grpc_health_check: {service_name: warmpath}"},
	{id: "ext-proc-panic", from: "{healthy_panic_threshold: {value: 0}, update_merge_window: 0s}", to: "{update_merge_window: 0s}"},
	{id: "merge-window", from: "{healthy_panic_threshold: {value: 0}, update_merge_window: 0s}", to: "{healthy_panic_threshold: {value: 0}}"},

	{id: "listens-elsewhere", setup: listening("127.0.0.1:9102", "127.0.0.1:9003")},
	{id: "listens-elsewhere", setup: listening("unix:/run/warmpath.sock", "")},
	{id: "listens-elsewhere", base: own, setup: listening("10.0.0.9:9002", "127.0.0.1:9102")}, // of which Envoy does not ask
	{id: "listens-elsewhere", setup: listening("", "127.0.0.1:9103")},
	{id: "tls-differs", setup: func(s *doctor.Setup) { s.Known, s.TLSExtProc = true, true }},
	{id: "tls-differs", setup: func(s *doctor.Setup) { s.Known, s.TLSXDS = true, true }},
	{id: "tls-differs", base: envoy.Options{TLS: tls, Secured: []string{envoy.ExtProcCluster}}, setup: known},
	{id: "xds-off", setup: func(s *doctor.Setup) { s.Known, s.ControlPlane = true, false }},
	{id: "pool-not-sent", setup: func(s *doctor.Setup) { s.Known, s.Pools = true, []string{"foo"} }},

	{id: "ext-proc-ends", base: own, from: keepalive, to: keepalive + "\n        common_http_protocol_options: {max_stream_duration: 30s}"},

	{id: "xds-unknown", from: "        cluster_name: warmpath_xds\n        #", to: "        cluster_name: warmpath_control\n        #"},
	{id: "xds-not-delta", from: "api_type: DELTA_GRPC", to: "api_type: GRPC"},
	{id: "xds-http1", from: "name: warmpath_xds\n    type: STRICT_DNS\n", to: "name: warmpath_xds\n    type: STRICT_DNS\n    # no HTTP/2\n"}, // changed below
	{id: "xds-keepalive", from: "name: warmpath_xds\n    type: STRICT_DNS\n", to: "name: warmpath_xds\n    type: STRICT_DNS\n    # no keepalive\n"},
	{id: "xds-backoff", from: "        retry_policy: {retry_back_off: {base_interval: 0.2s, max_interval: 1s}}\n", to: ""},
	{id: "no-node", from: "node: {id: envoy, cluster: warmpath}\n", to: ""},
	{id: "sampling-zero", base: envoy.Options{Collector: "otel:4317"}, from: "random_sampling: {value: 100} ", to: "random_sampling: {value: 0} "},
	{id: "span-dropped", base: envoy.Options{Collector: "otel:4317"}, from: "failure_mode_allow: true", to: "failure_mode_allow: true\n              emit_client_span: false"},
	{id: "admin-open", from: "{address: 127.0.0.1, port_value: 9901}", to: "{address: 0.0.0.0, port_value: 9901}"},
}

// config is the configuration with the fault.
func (f fault) config(t *testing.T) []byte {
	t.Helper()
	shipped, err := envoy.Render(f.base)
	if err != nil {
		t.Fatal(err)
	}
	text := string(shipped)
	if f.from != "" {
		if !strings.Contains(text, f.from) {
			t.Fatalf("%s: no %q in what is shipped", f.id, f.from)
		}
		text = strings.ReplaceAll(text, f.from, f.to)
	}
	if f.change != nil {
		text = f.change(text)
	}
	cluster := strings.Index(text, "  - name: warmpath_xds\n")
	switch f.id {
	case "retry-static", "retry-duplicates":
		if strings.Contains(text, "retry_on: 5xx") {
			break
		}
		text = strings.Replace(text, "num_retries: 2", "num_retries: 2\n                    retry_on: connect-failure", 1)
	case "xds-http1":
		text = text[:cluster] + strings.Replace(text[cluster:], keepalive, "http_protocol_options: {}", 1)
	case "xds-keepalive":
		text = text[:cluster] + strings.Replace(text[cluster:], keepalive, "http2_protocol_options: {}", 1)
	case "no-fallback": // and what is below it
		before, after, _ := strings.Cut(text, "# fallback_policy:")
		_, rest, _ := strings.Cut(after, "hash_balance_factor: 125}\n")
		text = before + "\n" + rest
	}
	return []byte(text)
}

func (f fault) settings() doctor.Setup {
	s := setup()
	if f.setup != nil {
		f.setup(&s)
	}
	return s
}

// Each fault is found by its rule and by no other, at the place where it is.
func TestFaults(t *testing.T) {
	var golden strings.Builder
	for _, f := range faults {
		config := f.config(t)
		findings := examine(t, "envoy.yaml", config, f.settings())
		if len(findings) == 0 {
			t.Errorf("%s: not found", f.id)
		}
		for _, found := range findings {
			if found.ID != f.id {
				t.Errorf("%s: also found %s at %s: %s", f.id, found.ID, found.Path, found.Found)
			}
			line := strings.TrimSpace(strings.Split(string(config), "\n")[found.Line-1])
			fmt.Fprintf(&golden, "%s %s: %s\n    %s\n    %s\n", found.Severity, found.ID, found.Found, found.Path, line)
		}
	}
	const file = "testdata/faults.golden"
	if *rewrite {
		if err := os.WriteFile(file, []byte(golden.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if golden.String() != string(want) {
		t.Errorf("%s has another content: go test ./internal/doctor -rewrite\n%s", file, golden.String())
	}
}

// Every rule that looks at a configuration has a fault by which it is known to work.
func TestEveryRuleHasAFault(t *testing.T) {
	// TestBeforeAndAfter in examples, TestSmuggling, TestState, TestNotSeen, TestNewerEnvoy
	seeded := map[string]bool{"unknown-here": true, "not-seen": true, "no-ext-proc": true, "smuggling": true, "update-refused": true, "ext-proc-away": true}
	for _, f := range faults {
		seeded[f.id] = true
	}
	for _, r := range doctor.Rules() {
		if !seeded[r.ID] && !r.Live() {
			t.Errorf("no fault is seeded for %s", r.ID)
		}
		if r.What == "" || r.Why == "" || r.Source == "" || r.Fix == "" {
			t.Errorf("%s: something is not said: %+v", r.ID, r)
		}
	}
}
