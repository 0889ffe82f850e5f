package monitoring

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// good is a fleet in rest: two warmpath processes, one pool, three endpoints, sixteen
// requests a second.
func good() map[string]string {
	all := map[string]string{
		`warmpath_hot_prefix_ratio{instance="a",job="warmpath",pool="chat",prefix="1f"}`:    "0.6x120",
		`warmpath_hot_prefix_homes{instance="a",job="warmpath",pool="chat",prefix="1f"}`:    "2x120",
		`warmpath_membership_unchanged_seconds{instance="a",job="warmpath",pool="chat"}`:    "0+60x120",
		`warmpath_recording_dropped_total{instance="a",job="warmpath",reason="write"}`:      "0x120",
		`warmpath_recording_dropped_total{instance="a",job="warmpath",reason="unanswered"}`: "0+5x120",
	}
	for _, instance := range []string{"a", "b"} {
		for series, values := range map[string]string{
			`up{}`: "1x120",
			`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="home"}`:      "0+450x120",
			`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="overflow"}`:  "0+30x120",
			`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="saturated"}`: "0x120",
			`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="undecided"}`: "0x120",
			`warmpath_override_missed_total{}`:                                                 "0x120",
			`warmpath_unanswered_total{}`:                                                      "0+5x120",
			`warmpath_refused_total{}`:                                                         "0x120",
			`warmpath_problems_total{problem="panic"}`:                                         "0x120",
			`warmpath_problems_total{problem="no_text"}`:                                       "0+9x120",
			`warmpath_leaked_total{}`:                                                          "0x120",
			`warmpath_endpoint_requests_total{endpoint="e1"}`:                                  "0+200x120",
			`warmpath_endpoint_requests_total{endpoint="e2"}`:                                  "0+120x120",
			`warmpath_endpoint_requests_total{endpoint="e3"}`:                                  "0+160x120",
			`warmpath_endpoint_weight{pool="chat",endpoint="e1"}`:                              "1x120",
			`warmpath_endpoint_weight{pool="chat",endpoint="e2"}`:                              "1x120",
			`warmpath_endpoint_weight{pool="chat",endpoint="e3"}`:                              "1x120",
			`warmpath_endpoints{pool="chat",state="healthy"}`:                                  "3x120",
			`warmpath_pool_wanted_endpoints{pool="chat"}`:                                      "1.2x120",
			`warmpath_expected_cached_characters_total{pool="chat"}`:                           "0+80000x120",
			`warmpath_prompt_characters_total{pool="chat"}`:                                    "0+100000x120",
			`warmpath_inspected_prompt_tokens_total{endpoint="e1"}`:                            "0+5000x120",
			`warmpath_inspected_cached_tokens_total{endpoint="e1"}`:                            "0+3800x120",
			`warmpath_engine_prefix_cache_queries_total{endpoint="e1"}`:                        "0+50000x120",
			`warmpath_engine_prefix_cache_hits_total{endpoint="e1"}`:                           "0+39000x120",
			`warmpath_engine_cache_hit_ratio{endpoint="e2"}`:                                   "0.75x120",
			`warmpath_inspected_responses_total{result="read"}`:                                "0+5x120",
			`warmpath_inspected_responses_total{result="not_sent"}`:                            "0x120",
			`warmpath_membership_age_seconds{pool="chat",source="file"}`:                       "0x120",
			`warmpath_membership_version{pool="chat"}`:                                         "4503599627370495x120",
			`warmpath_membership_errors_total{pool="chat"}`:                                    "0x120",
			`warmpath_rollout_unacknowledged{pool="chat"}`:                                     "0x120",
			`warmpath_xds_envoys{}`:                                                            "2x120",
			`warmpath_xds_nacks_total{type="cluster"}`:                                         "0x120",
			`warmpath_health_panic{pool="chat"}`:                                               "0x120",
			`warmpath_config_errors_total{}`:                                                   "0x120",
			`warmpath_policy_faults_total{origin="route_metadata",problem="malformed"}`:        "3x120",
			`warmpath_gossip_peers{}`:                                                          "1x120",
			`warmpath_tls_certificate_expiry_timestamp_seconds{listener="xds"}`:                "2000000x120",
			`warmpath_tls_certificate_errors_total{listener="xds"}`:                            "0x120",
		} {
			all[of(instance, series)] = values
		}
	}
	return all
}

// of adds what Prometheus does to the name of a series.
func of(instance, series string) string {
	name, labels, _ := strings.Cut(series, "{")
	own := `{instance="` + instance + `",job="warmpath"`
	if labels != "}" {
		own += ","
	}
	return name + own + labels
}

// cases are fleets that differ from the good one, and what is to fire there.
var cases = []struct {
	name   string
	differ map[string]string // of process a, empty values for no such series
	fires  []string
}{
	{"a fleet in rest", nil, nil},
	{"a process is away", map[string]string{`up{}`: "1x110 0x9"}, []string{"WarmpathDown"}},
	{"a process is away for a scrape", map[string]string{`up{}`: "1x119 0"}, nil},
	{"the filter does not send bodies", map[string]string{`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="undecided"}`: "0+40x120"}, []string{"WarmpathUndecided"}},
	{"few are undecided", map[string]string{`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="undecided"}`: "0+4x120"}, nil},
	{"requests go elsewhere", map[string]string{`warmpath_override_missed_total{}`: "0+40x120"}, []string{"WarmpathOverrideMissed"}},
	{"some went elsewhere for four minutes", map[string]string{`warmpath_override_missed_total{}`: "0x116 0+40x3"}, nil},
	{"Envoy gives up", map[string]string{`warmpath_unanswered_total{}`: "0+100x120"}, []string{"WarmpathUnanswered"}},
	{"too many requests", map[string]string{`warmpath_refused_total{}`: "0x117 5x2"}, []string{"WarmpathRefused"}},
	{"a defect", map[string]string{`warmpath_problems_total{problem="panic"}`: "0x115 1x4"}, []string{"WarmpathPanic"}},
	{"a defect long ago", map[string]string{`warmpath_problems_total{problem="panic"}`: "0x60 1x59"}, nil},
	{"a leak", map[string]string{`warmpath_leaked_total{}`: "0x60 2x59"}, []string{"WarmpathLeaked"}},
	{"an endpoint with most", map[string]string{`warmpath_endpoint_requests_total{endpoint="e1"}`: "0+900x120"}, []string{"WarmpathSkewed"}},
	{"an endpoint with most, of three times the weight", map[string]string{
		`warmpath_endpoint_requests_total{endpoint="e1"}`: "0+900x120", `warmpath_endpoint_weight{pool="chat",endpoint="e1"}`: "3x120",
	}, nil},
	{"overflow", map[string]string{`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="overflow"}`: "0+500x120"}, []string{"WarmpathOverflowing"}},
	{"no room", map[string]string{`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="saturated"}`: "0+100x120"}, []string{"WarmpathSaturated"}},
	{"a fleet that should have grown", map[string]string{`warmpath_pool_wanted_endpoints{pool="chat"}`: "2.4x120"}, []string{"WarmpathFleetTooSmall"}},
	{"a fleet that should have grown a while ago", map[string]string{`warmpath_pool_wanted_endpoints{pool="chat"}`: "2.4x116 1.2x3"}, nil},
	{"a fleet that should have grown for a few minutes", map[string]string{`warmpath_pool_wanted_endpoints{pool="chat"}`: "1.2x114 2.4x5"}, nil},
	{"a prefix with one home", map[string]string{
		`warmpath_hot_prefix_ratio{pool="chat",prefix="1f"}`: "0.9x120", `warmpath_hot_prefix_homes{pool="chat",prefix="1f"}`: "1x120",
	}, []string{"WarmpathHotPrefix"}},
	{"a hot prefix with many homes", map[string]string{`warmpath_hot_prefix_ratio{pool="chat",prefix="1f"}`: "1x120"}, nil},
	{"engines forget", map[string]string{`warmpath_inspected_cached_tokens_total{endpoint="e1"}`: "0+500x120"}, []string{"WarmpathHitRateDrift"}},
	{"an engine without a cache, by its answers", map[string]string{
		`warmpath_inspected_prompt_tokens_total{endpoint="e2"}`: "0+500x120", `warmpath_inspected_cached_tokens_total{endpoint="e2"}`: "0x120",
	}, []string{"WarmpathPrefixCachingOff"}},
	{"an engine without a cache, by its metrics", map[string]string{
		`warmpath_engine_prefix_cache_queries_total{endpoint="e3"}`: "0+50000x120", `warmpath_engine_prefix_cache_hits_total{endpoint="e3"}`: "0x120",
	}, []string{"WarmpathPrefixCachingOff"}},
	{"another engine without a cache, by its metrics", map[string]string{`warmpath_engine_cache_hit_ratio{endpoint="e3"}`: "0.01x120"}, []string{"WarmpathPrefixCachingOff"}},
	// vLLM counts no lookups while prefix caching is off.
	{"an engine that looks nothing up", map[string]string{
		`warmpath_engine_prefix_cache_queries_total{endpoint="e3"}`: "0x120", `warmpath_engine_prefix_cache_hits_total{endpoint="e3"}`: "0x120",
	}, []string{"WarmpathPrefixCachingOff"}},
	{"engines that tell of nothing cached", map[string]string{
		`warmpath_inspected_responses_total{result="read"}`: "0x120", `warmpath_inspected_responses_total{result="no_cached_tokens"}`: "0+5000x120",
	}, []string{"WarmpathCachedTokensUntold"}},
	{"an engine without a cache where nothing is expected", map[string]string{
		`warmpath_engine_cache_hit_ratio{endpoint="e3"}`: "0.01x120", `warmpath_prompt_characters_total{pool="chat"}`: "0+300000x120",
		`warmpath_inspected_cached_tokens_total{endpoint="e1"}`: "0+1000x120",
	}, nil},
	// docs/OPERATIONS.md, trying a policy: of a split's prompts alone something is expected.
	{"a split of a twentieth that is warmer than the others", map[string]string{
		`warmpath_decisions_total{pool="chat",strategy="PREFIX_AWARE",reason="home"}`: "0+10x120", `warmpath_decisions_total{pool="chat",strategy="RANDOM",reason="random"}`: "0+440x120",
		`warmpath_expected_cached_characters_total{pool="chat"}`: "0+7600x120", `warmpath_prompt_characters_total{pool="chat"}`: "0+10000x120",
		`warmpath_inspected_cached_tokens_total{endpoint="e1"}`: "0+2000x120",
		`warmpath_inspected_prompt_tokens_total{endpoint="e2"}`: "0+500x120", `warmpath_inspected_cached_tokens_total{endpoint="e2"}`: "0x120",
		`warmpath_inspected_responses_total{result="no_cached_tokens"}`: "0+5000x120",
	}, nil},
	// With a fixed prefixLength nothing is expected either, which the strategy does not tell.
	{"a pool of a fixed length beside one of auto", map[string]string{
		`warmpath_inspected_cached_tokens_total{endpoint="e1"}`:       "0+500x120",
		`warmpath_time_to_first_token_seconds_count{cache="unknown"}`: "0+20x120", `warmpath_time_to_first_token_seconds_count{cache="warm"}`: "0+50x120",
	}, nil},
	{"an engine of a pool that expects nothing", map[string]string{
		`warmpath_decisions_total{pool="other",strategy="RANDOM",reason="random"}`: "0+40x120", `warmpath_endpoint_weight{pool="other",endpoint="e9"}`: "1x120",
		`warmpath_endpoint_requests_total{endpoint="e9"}`: "0+40x120", `warmpath_engine_cache_hit_ratio{endpoint="e9"}`: "0.01x120",
	}, nil},
	{"three answers of an endpoint, of prompts that were new", map[string]string{
		`warmpath_inspected_prompt_tokens_total{endpoint="e2"}`: "0x90 400x12 800x12 1200x5", `warmpath_inspected_cached_tokens_total{endpoint="e2"}`: "0x120",
	}, nil},
	{"few requests to an endpoint", map[string]string{
		`warmpath_engine_cache_hit_ratio{endpoint="e4"}`: "0.01x120", `warmpath_endpoint_weight{pool="chat",endpoint="e4"}`: "0.01x120", `warmpath_endpoint_requests_total{endpoint="e4"}`: "0+1x120",
	}, nil},
	{"responses are not sent", map[string]string{
		`warmpath_inspected_responses_total{result="not_sent"}`: "0+100x120",
	}, []string{"WarmpathInspectionBlind"}},
	{"the source fails", map[string]string{`warmpath_membership_age_seconds{pool="chat",source="file"}`: "0x115 60+60x4"}, []string{"WarmpathMembershipStale"}},
	{"the source failed for half a minute", map[string]string{`warmpath_membership_age_seconds{pool="chat",source="file"}`: "0x118 30 0"}, nil},
	{"a slip in the file", map[string]string{`warmpath_membership_errors_total{pool="chat"}`: "0x117 1x2"}, []string{"WarmpathMembershipRefused"}},
	{"two memberships", map[string]string{`warmpath_membership_version{pool="chat"}`: "4503599627370494x120"}, []string{"WarmpathMembershipsDiffer"}},
	{"a membership on its way", map[string]string{`warmpath_membership_version{pool="chat"}`: "4503599627370495x119 7"}, nil},
	{"an Envoy does not answer", map[string]string{`warmpath_rollout_unacknowledged{pool="chat"}`: "0x60 1x59"}, []string{"WarmpathUnacknowledged"}},
	{"an Envoy refuses", map[string]string{`warmpath_xds_nacks_total{type="cluster"}`: "0x117 1x2"}, []string{"WarmpathNack"}},
	{"an Envoy is away", map[string]string{`warmpath_xds_envoys{}`: "2x100 1x19"}, []string{"WarmpathEnvoyGone"}},
	{"no control plane", map[string]string{`warmpath_xds_envoys{}`: "0x120"}, nil},
	{"nobody is healthy", map[string]string{`warmpath_health_panic{pool="chat"}`: "0x60 1x59"}, []string{"WarmpathHealthPanic"}},
	{"a slip in the configuration", map[string]string{`warmpath_config_errors_total{}`: "0x117 1x2"}, []string{"WarmpathConfigRefused"}},
	{"a slip in a policy", map[string]string{`warmpath_policy_faults_total{origin="route_metadata",problem="malformed"}`: "3x60 3+9x59"}, []string{"WarmpathPolicyFault"}},
	{"a router is not heard", map[string]string{`warmpath_gossip_peers{}`: "1x100 0x19"}, []string{"WarmpathGossipSilent"}},
	{"no gossip", map[string]string{`warmpath_gossip_peers{}`: "0x120"}, nil},
	{"a certificate ends", map[string]string{`warmpath_tls_certificate_expiry_timestamp_seconds{listener="xds"}`: "90000x120"}, []string{"WarmpathCertificateExpires"}},
	{"certificate files are broken", map[string]string{`warmpath_tls_certificate_errors_total{listener="xds"}`: "0x117 1x2"}, []string{"WarmpathCertificateRefused"}},
	{"the disk is full", map[string]string{`warmpath_recording_dropped_total{reason="write"}`: "0+9x120"}, []string{"WarmpathRecordingDrops"}},
}

// seeded is the good fleet as a case has it.
func seeded(differ map[string]string) map[string]string {
	all := good()
	for series, values := range differ {
		all[of("a", series)] = values
	}
	return all
}

// Each alert fires where it should, with its labels in its words, and nothing else does.
func TestAlerts(t *testing.T) {
	list := rules(t)
	fired := make(map[string]bool)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := seed(t, seeded(c.differ))
			for i := range list {
				r := &list[i]
				found := store.firing(t, r)
				if want := slices.Contains(c.fires, r.Alert); want != (len(found) > 0) {
					t.Errorf("%s: fires %v, want it %v", r.Alert, found, want)
				}
				for _, a := range found {
					fired[r.Alert] = true
					for _, text := range r.Annotations {
						if words := a.expand(t, text); strings.Contains(words, "{{") || strings.Contains(words, "no value") {
							t.Errorf("%s says: %s", r.Alert, words)
						}
					}
				}
			}
		})
	}
	if c := seed(t, map[string]string{`up{job="other",instance="z"}`: "1x120"}); len(c.firing(t, &list[0])) != 1 {
		t.Error("nobody is told that there is no warmpath at all")
	}
	for _, r := range list {
		if !fired[r.Alert] {
			t.Errorf("%s fires in no case", r.Alert)
		}
		if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s: severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 60 {
			t.Errorf("%s does not say what to do: %q", r.Alert, r.Annotations)
		}
	}
}

// An Envoy whose control stream goes over to another process is not away:
// docs/OPERATIONS.md, two warmpath processes behind one Envoy.
func TestEnvoysGoOver(t *testing.T) {
	list := rules(t)
	gone := &list[slices.IndexFunc(list, func(r rulefmt.Rule) bool { return r.Alert == "WarmpathEnvoyGone" })]
	for _, c := range []struct {
		name  string
		a, b  string // the Envoys of two processes, or of one before and after a restart
		fires bool
	}{
		{"at rest", "1x120", "1x120", false},
		{"to the other process", "1x100 0x19", "0x100 1x19", false},
		{"to the next process", "2x100 stale", "_x101 2x18", false},
		{"to the next process, counted by both for four scrapes", "2x100 stale", "_x97 2x22", false},
		{"one stays away", "2x100 stale", "_x101 1x18", true},
		{"one of one", "1x100 0x19", "0x120", true},
	} {
		store := seed(t, map[string]string{of("a", `warmpath_xds_envoys{}`): c.a, of("b", `warmpath_xds_envoys{}`): c.b})
		if found := store.firing(t, gone); len(found) > 0 != c.fires {
			t.Errorf("%s: fires %v, want it %v", c.name, found, c.fires)
		}
	}
}

var promtool = flag.String("promtool", "", "a promtool `binary` that is to agree with the cases")

// With -promtool, Prometheus' own tool finds the same as the engine here.
func TestPromtoolAgrees(t *testing.T) {
	if *promtool == "" {
		return
	}
	path, err := filepath.Abs(folder + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type expected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
	type expectation struct {
		At    string     `json:"eval_time"`
		Name  string     `json:"alertname"`
		Fires []expected `json:"exp_alerts"`
	}
	type series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type test struct {
		Interval string        `json:"interval"`
		Input    []series      `json:"input_series"`
		Rules    []expectation `json:"alert_rule_test"`
	}
	var tests []test
	list := rules(t)
	for _, c := range cases {
		all := seeded(c.differ)
		one := test{Interval: "1m"}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			one.Input = append(one.Input, series{name, all[name]})
		}
		store := seed(t, all)
		for i := range list {
			r := &list[i]
			e := expectation{At: "120m", Name: r.Alert, Fires: []expected{}}
			for _, a := range store.firing(t, r) {
				x := expected{a.labels.Map(), make(map[string]string)}
				maps.Copy(x.Labels, r.Labels)
				for key, text := range r.Annotations {
					x.Annotations[key] = a.expand(t, text)
				}
				e.Fires = append(e.Fires, x)
			}
			one.Rules = append(one.Rules, e)
		}
		tests = append(tests, one)
	}
	data, err := json.Marshal(map[string]any{"rule_files": []string{path}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml") // JSON is YAML
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"check", "rules", path}, {"test", "rules", file}} {
		out, err := exec.CommandContext(t.Context(), *promtool, arguments...).CombinedOutput()
		t.Logf("promtool %s: %.3000s", strings.Join(arguments[:2], " "), out)
		if err != nil {
			t.Error(err)
		}
	}
}
