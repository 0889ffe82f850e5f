package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// Routes of one gateway follow their own policies, from Envoy's configuration: a
// name or JSON in the gRPC metadata, or the route's metadata. One that cannot be
// used is counted and the default holds.
func TestPoliciesOfRoutes(t *testing.T) {
	t.Parallel()
	route := func(name, setting string) string {
		return fmt.Sprintf(`              - name: %s
                match: {prefix: "/%s/"}
                request_body_buffer_limit: 4194304
                request_headers_to_remove: [x-gateway-destination-endpoint]
                route: {cluster: warmpath_pool, prefix_rewrite: "/", timeout: 0s}
%s`, name, name, setting)
	}
	metadata := func(value string) string {
		return fmt.Sprintf(`                typed_per_filter_config:
                  warmpath.ext_proc:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute
                    overrides: {grpc_initial_metadata: [{key: warmpath-policy, value: '%s'}]}
`, value)
	}
	routes := route("named", metadata("sticky")) +
		route("json", metadata(`{"strategy":"PREFIX_AWARE","prefix_length":2048,"concurrency_threshold":1}`)) +
		route("bad", metadata("no-such-policy")) +
		route("metadata", "                metadata: {filter_metadata: {warmpath: {strategy: PREFIX_AWARE, prefix_length: 1024}}}\n")
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 5,
		Config: stack.Config{
			Strategy: "RANDOM",
			Extra:    "policies: [{name: sticky, routingStrategy: PREFIX_AWARE, prefixAwareRoutingConfig: {prefixLength: 1024}}]",
		},
		Bootstrap: testenv.Replace(t, "              - name: pool\n", routes+"              - name: pool\n"),
	})
	body := chat(strings.Repeat("The same on every route. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	hosts := func(path string) map[string]int {
		counts := make(map[string]int)
		for range 25 {
			got, err := served(t.Context(), s, path, body)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			counts[got]++
		}
		return counts
	}
	for _, path := range []string{"/named", "/metadata"} {
		if got := hosts(path + "/v1/chat/completions"); got[home] != 25 {
			t.Errorf("%s: %v, home is %s", path, got, home)
		}
	}
	for _, path := range []string{"", "/bad"} {
		if got := hosts(path + "/v1/chat/completions"); len(got) < 3 {
			t.Errorf("%s: RANDOM used %v", path, got)
		}
	}
	if n, err := s.Metric(t.Context(), "warmpath_policy_faults_total", `problem="unknown_policy"`); err != nil || n != 25 {
		t.Errorf("unknown policies counted %v times (%v), want 25", n, err)
	}
	if n, err := s.Metric(t.Context(), "warmpath_policy_faults_total", `origin="route_metadata"`, `problem="malformed"`); err != nil || n != 0 {
		t.Errorf("malformed policies counted %v times (%v), want 0", n, err)
	}
	// Threshold 1 of the JSON policy: five held streams fill five replicas.
	open, counts := holdOpenAt(t, s, "/json/v1/chat/completions", body, 5)
	if len(counts) != 5 {
		t.Errorf("with threshold 1 five streams are at %v", counts)
	}
	truthAgrees(t, s)
	open.close()
	noMisses(t, s)
	atRest(t, s)
}
