package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
)

// second is a listener that sends to the same servers without asking warmpath, and web
// one that does not.
const second = `  - name: second
    address: {socket_address: {address: 127.0.0.1, port_value: 10001}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: second
          route_config:
            virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: warmpath_pool}}]}]
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`

// What has nothing to do with model servers is left alone; another way to them is not.
func TestOtherListeners(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][]string{"warmpath_pool": {"no-ext-proc"}, "web": nil} {
		config := strings.Replace(string(shipped), "  clusters:\n", second+"\n  clusters:\n  - {name: web, type: STRICT_DNS}\n", 1)
		config = strings.Replace(config, "{cluster: warmpath_pool}", "{cluster: "+cluster+"}", 1)
		var ids []string
		for _, f := range examine(t, "envoy.yaml", []byte(config), setup()) {
			ids = append(ids, f.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("a second listener to %s: found %q, want %q", cluster, ids, want)
		}
	}
}

// A route beside those to model servers has timeouts and retries as it likes; warmpath
// is not to be asked there.
func TestOtherRoutes(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	const off = `typed_per_filter_config: {warmpath.ext_proc: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute, disabled: true}}, `
	for settings, want := range map[string]string{"": "filter-elsewhere", off: ""} {
		other := "              - {name: web, match: {prefix: /web}, " + settings + "route: {cluster: web, retry_policy: {retry_on: 5xx}}}\n" +
			"              - {name: moved, match: {prefix: /old}, redirect: {path_redirect: /new}}\n"
		config := strings.Replace(string(shipped), route, other+route, 1)
		config = strings.Replace(config, "  clusters:\n", "  clusters:\n  - {name: web, type: STRICT_DNS}\n", 1)
		got := ""
		for _, f := range examine(t, "envoy.yaml", []byte(config), setup()) {
			got += f.ID
		}
		if got != want {
			t.Errorf("with %q: found %q, want %q", settings, got, want)
		}
	}
}

// A filter that asks somebody else is not warmpath's: nothing is said of how it should be,
// and that warmpath's is missing is. It is warmpath's if it may choose endpoints, or if it
// asks where warmpath listens.
func TestForeignProcessor(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	guard := strings.NewReplacer("name: warmpath.ext_proc", "name: guardrail", "warmpath_ext_proc", "pii_guard", "failure_mode_allow: true", "failure_mode_allow: false")
	for _, tt := range []struct {
		name, namespaces, extProc string
		want                      []string
	}{
		{"a guardrail", "[guard]", "", []string{"no-ext-proc"}},
		{"elsewhere", "[guard]", "127.0.0.1:9999", []string{"no-ext-proc"}},
		{"where warmpath listens", "[guard]", "127.0.0.1:9002", []string{"fails-closed", "no-metadata"}},
		{"it chooses", "[envoy.lb]", "", []string{"fails-closed"}},
	} {
		config := strings.ReplaceAll(guard.Replace(string(shipped)), "receiving_namespaces: {untyped: [envoy.lb, warmpath]}", "receiving_namespaces: {untyped: "+tt.namespaces+"}")
		s := setup()
		s.ExtProc = tt.extProc
		var ids []string
		for _, f := range examine(t, "envoy.yaml", []byte(config), s) {
			ids = append(ids, f.ID)
			if f.ID == "no-ext-proc" && !strings.Contains(f.Found, `"guardrail" asks the cluster "pii_guard"`) {
				t.Errorf("%s: %s does not name the filter", tt.name, f.Found)
			}
		}
		if !slices.Equal(ids, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.name, ids, tt.want)
		}
	}
}

// A filter may be written as a tree with its type, as EnvoyFilters of Istio's have it.
func TestTypedStruct(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(shipped), filterStart)
	filter, after, found := strings.Cut(rest, router)
	if !found {
		t.Fatal("the file has another form")
	}
	for _, kind := range []string{"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"} {
		for change, want := range map[[2]string]string{
			{}: "",
			{"failure_mode_allow: true", "failure_mode_allow: false"}:      "fails-closed typed_config.value.failure_mode_allow",
			{"request_body_mode: NONE\n", "request_body_mode: streamed\n"}: "body-streamed typed_config.value.processing_mode.request_body_mode",
		} {
			tree := strings.Replace(filter, `"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor`,
				`"@type": type.googleapis.com/`+kind+"\n              type_url: type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor\n              value:", 1)
			head, fields, _ := strings.Cut(tree, "value:\n")
			fields = "  " + strings.ReplaceAll(strings.Replace(fields, change[0], change[1], 1), "\n", "\n  ")
			got := ""
			for _, f := range examine(t, "envoy.yaml", []byte(before+filterStart+head+"value:\n"+strings.TrimRight(fields, " ")+router+after), setup()) {
				got += f.ID + " " + f.Path[strings.LastIndex(f.Path, "typed_config."):]
			}
			if got != want {
				t.Errorf("%s, %q: found %q, want %q", kind, change[1], got, want)
			}
		}
	}
}

// matched begins a filter that a matcher may skip.
const matched = `              "@type": type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher
              xds_matcher: {matcher_list: {matchers: [{predicate: {single_predicate: {input: {name: h, typed_config: {"@type": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: x-skip}}, value_match: {exact: "1"}}}, on_match: {action: {name: skip, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.common.matcher.action.v3.SkipFilter}}}}]}}
              extension_config:
                name: inner
`

// A filter of warmpath's that a matcher may skip is looked at, and that it may be is told.
func TestMatchedFilter(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(shipped), filterStart+"            typed_config:\n")
	filter, after, found := strings.Cut(rest, router)
	if !found {
		t.Fatal("the file has another form")
	}
	for allow, want := range map[string][]string{"true": {"not-seen"}, "false": {"not-seen", "fails-closed"}} {
		inner := "                typed_config:\n    " + strings.ReplaceAll(strings.ReplaceAll(filter, "\n", "\n    "), "failure_mode_allow: true", "failure_mode_allow: "+allow)
		var ids []string
		for _, f := range examine(t, "envoy.yaml", []byte(before+filterStart+"            typed_config:\n"+matched+strings.TrimRight(inner, " ")+router+after), setup()) {
			ids = append(ids, f.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("failure_mode_allow: %s: found %q, want %q", allow, ids, want)
		}
	}
}

// What is not in the configuration is told of, and not taken for absent.
func TestNotSeen(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	const (
		source = "{path_config_source: {path: /etc/envoy/it.yaml}, resource_api_version: V3}"
		routes = "          route_config:\n"
		from   = "filter_chains[0].filters[0].typed_config."
	)
	for _, tt := range []struct {
		name, begin, end, to string
		want                 string
	}{
		{"RDS", routes, "          http_filters:", "          rds: {route_config_name: llm, config_source: " + source + "}\n", "listeners[0]." + from + "rds"},
		{
			"scopes", routes, "          http_filters:", "          scoped_routes: {name: a, scope_key_builder: {fragments: [{header_value_extractor: {name: x, index: 0}}]}, rds_config_source: " + source +
				", scoped_rds: {scoped_rds_config_source: " + source + "}}\n", "listeners[0]." + from + "scoped_routes",
		},
		{"ECDS", filterStart, router, filterStart + "            config_discovery: {config_source: " + source + ", type_urls: [type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor]}\n", "listeners[0]." + from + "http_filters[0].config_discovery"},
		{"LDS", "static_resources:\n", "  clusters:\n", "dynamic_resources: {lds_config: " + source + "}\nstatic_resources:\n", "dynamic_resources.lds_config"},
		{"VHDS", routes, "            name: llm\n", routes + "            vhds: {config_source: " + source + "}\n", "listeners[0]." + from + "route_config.vhds"},
		{
			"a plugin", poolRoute, "                  timeout: 0s",
			"                  inline_cluster_specifier_plugin: {extension: {name: lua, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig}}}\n",
			"listeners[0]." + from + "route_config.virtual_hosts[0].routes[0].route.inline_cluster_specifier_plugin",
		},
		{
			"a plugin beside", "              routes:\n", route,
			"              routes:\n              - {match: {path: /a}, route: {inline_cluster_specifier_plugin: {extension: {name: lua, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig}}}}}\n",
			"listeners[0]." + from + "route_config.virtual_hosts[0].routes[0].route.inline_cluster_specifier_plugin",
		},
		{
			"a composite", filterStart, router, filterStart + "            typed_config:\n" + matched + "                typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.composite.v3.Composite}\n",
			"listeners[0]." + from + "http_filters[0].typed_config.extension_config.typed_config",
		},
		{
			"a matcher", "              routes:\n", "          http_filters:", "              matcher: {matcher_tree: {input: {name: path, typed_config: {\"@type\": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: \":path\"}}, prefix_match_map: {map: {}}}}\n",
			"listeners[0]." + from + "route_config.virtual_hosts[0].matcher",
		},
	} {
		before, rest, found := strings.Cut(string(shipped), tt.begin)
		i := strings.Index(rest, tt.end)
		if !found || i < 0 {
			t.Fatalf("%s: %q and %q are not there", tt.name, tt.begin, tt.end)
		}
		findings := examine(t, "envoy.yaml", []byte(before+tt.to+rest[i:]), setup())
		if len(findings) != 1 || findings[0].ID != "not-seen" || strings.TrimPrefix(findings[0].Path, "static_resources.") != tt.want {
			t.Errorf("%s: found %+v, want not-seen at %s", tt.name, findings, tt.want)
		}
	}
}

// What Envoy counts tells how it fares.
func TestState(t *testing.T) {
	shipped, err := envoy.Render(envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, stats := range map[string]map[string]float64{
		"":               {"cluster.warmpath_ext_proc.membership_total": 1, "cluster.warmpath_ext_proc.membership_healthy": 1, "cluster_manager.cds.update_rejected": 0},
		"ext-proc-away":  {"cluster.warmpath_ext_proc.membership_total": 2, "cluster.warmpath_pool.membership_healthy": 1},
		"update-refused": {"cluster.warmpath_pool.update_rejected": 3},
	} {
		d, err := doctor.ReadLive("http://127.0.0.1:9901", shipped)
		if err != nil {
			t.Fatal(err)
		}
		d.SetStats(stats)
		findings, err := doctor.Examine(d, setup())
		if err != nil {
			t.Fatal(err)
		}
		if len(findings) != 1 && want != "" || len(findings) == 1 && findings[0].ID != want {
			t.Errorf("%v: found %+v, want %q", stats, findings, want)
		}
	}
}

// An Envoy that runs has taken its configuration: what is not known here is no fault of it.
func TestNewerEnvoy(t *testing.T) {
	dump := `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"of_tomorrow": 1}}, {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "of_tomorrow": 1}]}`
	var got []string
	for _, f := range examine(t, "dump.json", []byte(dump), setup()) {
		if f.ID != "no-ext-proc" {
			got = append(got, fmt.Sprint(f.ID, " ", f.Severity, " ", f.Column))
		}
	}
	if want := []string{"unknown-here note 96", "unknown-here note 181"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// Endpoints over EDS are those of the cluster's name where it names no service.
func TestEndpointsWithoutAServiceName(t *testing.T) {
	const dump = `{"configs": [
{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamic_active_clusters": [{"cluster": {
  "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "llm", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}},
  "load_balancing_policy": {"policies": [{"typed_extension_config": {"name": "o", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost"}}}]}}}]},
{"@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump", "dynamic_endpoint_configs": [{"endpoint_config": {
  "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "llm", "endpoints": [{"lb_endpoints": [
    {"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}},
    {"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}}]}]}}]}]}`
	findings := examine(t, "dump.json", []byte(dump), setup())
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.ID == "address-twice" }) {
		t.Errorf("found %+v", findings)
	}
}
