package doctor_test

import (
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
