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
