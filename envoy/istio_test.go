package envoy_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/envoy"
)

type mapping = map[string]any

func istio(t *testing.T, o envoy.IstioOptions) string {
	t.Helper()
	text, err := envoy.Istio(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are the objects of a file by kind and name.
func documents(t *testing.T, text string) map[string]mapping {
	t.Helper()
	found := make(map[string]mapping)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o mapping
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		metadata := o["metadata"].(mapping)
		found[o["kind"].(string)+" "+metadata["namespace"].(string)+"/"+metadata["name"].(string)] = o
	}
}

// at follows keys and indices into a document.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(mapping)
			if !ok {
				t.Fatalf("no %q in %T", step, v)
			}
			v = m[step]
		case int:
			list, ok := v.([]any)
			if !ok || step >= len(list) {
				t.Fatalf("no element %d in %T", step, v)
			}
			v = list[step]
		}
	}
	return v
}

// patches are the values of the EnvoyFilter by what they apply to; that of a
// cluster by its service, too.
func patches(t *testing.T, text string) map[string]mapping {
	t.Helper()
	found := make(map[string]mapping)
	for _, p := range at(t, documents(t, text)["EnvoyFilter istio-system/warmpath"], "spec", "configPatches").([]any) {
		to := at(t, p, "applyTo").(string)
		if to == "CLUSTER" {
			to += " " + at(t, p, "match", "cluster", "service").(string)
		}
		found[to] = at(t, p, "patch", "value").(mapping)
	}
	return found
}

const (
	modelsPatch   = "CLUSTER llama.llm.svc.cluster.local"
	warmpathPatch = "CLUSTER warmpath.llm.svc.cluster.local"
)

// What Istio gives Envoy is what the bootstrap gives it: the filter, the headers
// that are removed early, the route and the clusters.
func TestIstioAgreesWithBootstrap(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	var bootstrap, pool mapping
	if err := errors.Join(yaml.Unmarshal(shipped, &bootstrap), yaml.Unmarshal(envoy.Cluster(), &pool)); err != nil {
		t.Fatal(err)
	}
	manager := at(t, bootstrap, "static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config")
	filter := at(t, manager, "http_filters", 0).(mapping)
	at(t, filter, "typed_config", "grpc_service", "envoy_grpc").(mapping)["cluster_name"] = "outbound|9002||warmpath.llm.svc.cluster.local"
	filter["disabled"] = true
	route := at(t, manager, "route_config", "virtual_hosts", 0, "routes", 1)
	extProc := at(t, bootstrap, "static_resources", "clusters", 0)
	got := patches(t, istio(t, envoy.IstioOptions{}))
	for what, pair := range map[string][2]any{
		"filter":        {got["HTTP_FILTER"], filter},
		"early headers": {at(t, got["NETWORK_FILTER"], "typed_config", "early_header_mutation_extensions"), at(t, manager, "early_header_mutation_extensions")},
		"body limit":    {got["HTTP_ROUTE"]["request_body_buffer_limit"], at(t, route, "request_body_buffer_limit")},
		"hash policy":   {at(t, got["HTTP_ROUTE"], "route", "hash_policy"), at(t, route, "route", "hash_policy")},
		"balancing":     {got[modelsPatch]["load_balancing_policy"], pool["load_balancing_policy"]},
		"panic":         {got[modelsPatch]["common_lb_config"], pool["common_lb_config"]},
		"protocol":      {got[warmpathPatch]["typed_extension_protocol_options"], at(t, extProc, "typed_extension_protocol_options")},
		"health checks": {got[warmpathPatch]["health_checks"], at(t, extProc, "health_checks")},
		"router's pool": {got[warmpathPatch]["common_lb_config"], at(t, extProc, "common_lb_config")},
	} {
		if pair[1] == nil || !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: Istio has\n%v\nthe bootstrap\n%v", what, pair[0], pair[1])
		}
	}
	if len(got) != 5 {
		t.Errorf("%d patches, want 5", len(got))
	}
	if enabled := at(t, got["HTTP_ROUTE"], "typed_per_filter_config", envoy.ExtProcFilter); enabled == nil {
		t.Errorf("the route does not enable the filter %s", envoy.ExtProcFilter)
	}
}

// What was found to break Envoy or Istio stays out.
func TestIstioAvoids(t *testing.T) {
	objects := documents(t, istio(t, envoy.IstioOptions{}))
	route := at(t, objects["VirtualService llm/llm"], "spec", "http", 0)
	if route.(mapping)["name"] != envoy.IstioRoute || at(t, route, "retries", "attempts") != 0 || route.(mapping)["timeout"] != nil {
		t.Errorf("route %v: want the name %s, retries off, no timeout", route, envoy.IstioRoute)
	}
	for _, name := range []string{"DestinationRule llm/llama", "DestinationRule llm/warmpath"} {
		policy := at(t, objects[name], "spec", "trafficPolicy")
		if at(t, policy, "loadBalancer", "localityLbSetting", "enabled") != false || at(t, policy, "connectionPool").(mapping)["http"] != nil ||
			policy.(mapping)["outlierDetection"] != nil {
			t.Errorf("%s: %v", name, policy)
		}
	}
	if len(objects) != 7 {
		t.Errorf("%d objects, want 7", len(objects))
	}
}

func TestIstioReplacesEveryName(t *testing.T) {
	shipped := istio(t, envoy.IstioOptions{})
	// What is wanted in one place is shipped in another, on purpose.
	got := istio(t, envoy.IstioOptions{
		GatewayNamespace: "llama", GatewayLabels: map[string]string{"istio": "true", "app": "edge"}, GatewayPort: 8000, Host: "*",
		Namespace: "istio-system", Warmpath: "llm", WarmpathPort: 80, Models: "warmpath", ModelsPort: 9002,
		TenantHeader: "x-tenant", BodyLimit: 1 << 20,
	})
	var changed []string
	before, after := strings.Split(shipped, "\n"), strings.Split(got, "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines, want %d", len(after), len(before))
	}
	for i := range before {
		if before[i] != after[i] {
			changed = append(changed, strings.TrimSpace(after[i]))
		}
	}
	want := []string{
		"#   client ──► gateway (llama) ──ext_proc──► :80 warmpath   which pod holds this prompt's prefix?",
		"#                                  └──► the chosen pod of the Service warmpath",
		"#   membership: {kubernetes: {service: warmpath, port: http, terminating: gone}}",
		"name: warmpath", "namespace: istio-system",
		"selector: {app: warmpath}",
		"- {name: http, port: 9002, targetPort: 9002}",
		"name: llm", "namespace: istio-system",
		"- {name: grpc-ext-proc, port: 80, targetPort: ext-proc, appProtocol: grpc}",
		"namespace: llama",
		`selector: {"app": "edge", "istio": "true"}`,
		"- port: {number: 8000, name: http, protocol: HTTP}",
		`hosts: ["*"]`,
		"namespace: istio-system",
		`hosts: ["*"]`,
		"gateways: [llama/llm]",
		"- destination: {host: warmpath.istio-system.svc.cluster.local, port: {number: 9002}}",
		"name: warmpath", "namespace: istio-system",
		"host: warmpath.istio-system.svc.cluster.local",
		"name: llm", "namespace: istio-system",
		"host: llm.istio-system.svc.cluster.local",
		"namespace: llama",
		`labels: {"app": "edge", "istio": "true"}`,
		"grpc_service: {envoy_grpc: {cluster_name: outbound|80||llm.istio-system.svc.cluster.local}}",
		"request_body_buffer_limit: 1048576",
		"- header: {header_name: x-tenant}",
		"cluster: {service: warmpath.istio-system.svc.cluster.local, portNumber: 9002}",
		"cluster: {service: llm.istio-system.svc.cluster.local, portNumber: 80}",
	}
	if strings.Join(changed, "\n") != strings.Join(want, "\n") {
		t.Errorf("changed lines:\n%s\nwant:\n%s", strings.Join(changed, "\n"), strings.Join(want, "\n"))
	}
}

func TestIstioRefuses(t *testing.T) {
	for want, o := range map[string]envoy.IstioOptions{
		`namespace of the gateway "a b", want 1..63`: {GatewayNamespace: "a b"},
		`label of the gateway "istio": "a}"`:         {GatewayLabels: map[string]string{"istio": "a}"}},
		`label of the gateway "a: b": "c"`:           {GatewayLabels: map[string]string{"a: b": "c"}},
		"port of the gateway 65536, want 1..65535":   {GatewayPort: 65536},
		`host "a..b"`:                                    {Host: "a..b"},
		`host "*a"`:                                      {Host: "*a"},
		`namespace "LLM"`:                                {Namespace: "LLM"},
		`Service of warmpath "a.b"`:                      {Warmpath: "a.b"},
		"port of the Service of warmpath -1":             {WarmpathPort: -1},
		`Service of the model servers "-"`:               {Models: "-"},
		"port of the Service of the model servers 70000": {ModelsPort: 70000},
		"limit of bodies -1":                             {BodyLimit: -1},
		`namespace "true"`:                               {Namespace: "true"},
		`namespace "no"`:                                 {Namespace: "no"},
		`namespace of the gateway "y"`:                   {GatewayNamespace: "y"},
		`Service of warmpath "on"`:                       {Warmpath: "on"},
		`Service of the model servers "yes"`:             {Models: "yes"},
		`Service of warmpath "123"`:                      {Warmpath: "123"},
		`"warmpath" is the Service of warmpath and of`:   {Models: "warmpath"},
		`"llama" is the Service of warmpath and of`:      {Warmpath: "llama"},
		`"llm" is the Service of warmpath and of`:        {Warmpath: "llm", Models: "llm"},
		`header of the tenant "a}"`:                      {TenantHeader: "a}"},
	} {
		if _, err := envoy.Istio(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestIstioFollowsTheConfiguration(t *testing.T) {
	got := istio(t, envoy.IstioOptions{RequestsPerConnection: 1, WithoutInspection: true})
	rule := at(t, documents(t, got)["DestinationRule llm/llama"], "spec", "trafficPolicy", "connectionPool")
	if n := at(t, rule, "http", "maxRequestsPerConnection"); n != 1 {
		t.Errorf("%v requests a connection", n)
	}
	if modes := at(t, patches(t, got)["HTTP_FILTER"], "typed_config", "allowed_override_modes").([]any); len(modes) != 1 || strings.Contains(got, "STREAMED, response_trailer") {
		t.Errorf("modes %v", modes)
	}
}

// Envoy accepts the pieces, each in the place that Istio gives it.
func TestEnvoyAcceptsIstiosPieces(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	var bootstrap mapping
	if err := yaml.Unmarshal(shipped, &bootstrap); err != nil {
		t.Fatal(err)
	}
	p := patches(t, istio(t, envoy.IstioOptions{}))
	manager := at(t, bootstrap, "static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config").(mapping)
	manager["early_header_mutation_extensions"] = at(t, p["NETWORK_FILTER"], "typed_config", "early_header_mutation_extensions")
	manager["http_filters"].([]any)[0] = p["HTTP_FILTER"]
	route := at(t, manager, "route_config", "virtual_hosts", 0, "routes", 1).(mapping)
	route["typed_per_filter_config"] = p["HTTP_ROUTE"]["typed_per_filter_config"]
	route["request_body_buffer_limit"] = p["HTTP_ROUTE"]["request_body_buffer_limit"]
	at(t, route, "route").(mapping)["hash_policy"] = at(t, p["HTTP_ROUTE"], "route", "hash_policy")
	for name, patch := range map[string]string{"outbound|8000||llama.llm.svc.cluster.local": modelsPatch, "outbound|9002||warmpath.llm.svc.cluster.local": warmpathPatch} {
		cluster := mapping{"name": name, "type": "EDS", "connect_timeout": "1s", "eds_cluster_config": mapping{"eds_config": mapping{"ads": mapping{}}}}
		for key, value := range p[patch] {
			cluster[key] = value
		}
		clusters := bootstrap["static_resources"].(mapping)
		clusters["clusters"] = append(clusters["clusters"].([]any), cluster)
	}
	var text bytes.Buffer
	if err := yaml.NewEncoder(&text).Encode(bootstrap); err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, text.String()); err != nil {
		t.Errorf("Envoy refuses it: %v\n%s", err, out)
	}
	broken := strings.Replace(text.String(), "overrides: {}", "disabled: false", 1)
	if out, err := validate(t, broken); err == nil {
		t.Errorf("Envoy accepts what the filter is not enabled by: %s", out)
	}
}
