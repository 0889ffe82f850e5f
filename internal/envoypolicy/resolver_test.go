package envoypolicy

import (
	"errors"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/internal/route"
)

const silence = "default LEAST_OUTSTANDING_REQUESTS -1 0"

func TestInitialMetadata(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", silence},
		{" ", silence},
		{"{}", silence},
		{"long", "initial_metadata PREFIX_AWARE 16384 7"},
		{" random\n", "initial_metadata RANDOM -1 0"},
		{`{"policy":"long"}`, "initial_metadata PREFIX_AWARE 16384 7"},
		{`{"policy":"long","prefix_length":1024}`, "initial_metadata PREFIX_AWARE 1024 7"},
		{`{"strategy":"PREFIX_AWARE"}`, "initial_metadata PREFIX_AWARE -1 0"},
		{`{"concurrency_threshold":10}`, "initial_metadata LEAST_OUTSTANDING_REQUESTS -1 10"},
		{`{"policy":"long","prefix_length":"auto"}`, "initial_metadata PREFIX_AWARE -1 7"},
		{`{"policy":"long","concurrency_threshold":"auto"}`, "initial_metadata PREFIX_AWARE 16384 0"},
		{`{"strategy":"PREFIX_AWARE","prefixLength":65536,"concurrencyThreshold":1024}`, "initial_metadata PREFIX_AWARE 65536 1024"},
		{`{"prefix_length":4.096e3}`, "initial_metadata LEAST_OUTSTANDING_REQUESTS 4096 0"},
		{`{"RoutingConfig":{"RoutingStrategy":"PREFIX_AWARE","PrefixAwareRoutingConfig":{"PrefixLength":2048,"ConcurrencyThreshold":5}}}`, "initial_metadata PREFIX_AWARE 2048 5"},
		{`{"routingStrategy":"PREFIX_AWARE","prefixAwareRoutingConfig":{"prefixLength":2048}}`, "initial_metadata PREFIX_AWARE 2048 0"},
		{`{"routing_config":{}}`, silence},

		{"short", `"short": unknown policy, want the name of a policy of the configuration, or JSON`},
		{`{"policy":"short"}`, `policy "short": unknown policy, want the name of a policy of the configuration`},
		{`{"policy":""}`, `policy "": unknown policy, want the name of a policy of the configuration`},
		{`{"policy":5}`, `policy 5: wrong type, want the name of a policy of the configuration`},
		{`{"strategy":"KV"}`, `strategy "KV": out of range, want one of RANDOM, LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE, KV_AWARE`},
		{`{"strategy":true}`, `strategy true: wrong type, want one of RANDOM, LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE, KV_AWARE`},
		{`{"concurrency_threshold":0}`, "concurrency_threshold 0: out of range, want a whole number 1..1024 or auto"},
		{`{"prefix_length":1023}`, "prefix_length 1023: out of range, want a whole number 1024..65536 or auto"},
		{`{"prefix_length":65537}`, "prefix_length 65537: out of range, want a whole number 1024..65536 or auto"},
		{`{"prefix_length":4096.5}`, "prefix_length 4096.5: out of range, want a whole number 1024..65536 or auto"},
		{`{"prefix_length":"4096"}`, `prefix_length "4096": wrong type, want a whole number 1024..65536 or auto`},
		{`{"prefix_length":"automatic"}`, `prefix_length "automatic": wrong type, want a whole number 1024..65536 or auto`},
		{`{"prefix_length":null}`, "prefix_length null: wrong type, want a whole number 1024..65536 or auto"},
		{`{"concurrency_threshold":-1}`, "concurrency_threshold -1: out of range, want a whole number 1..1024 or auto"},
		{`{"concurrency_threshold":1025}`, "concurrency_threshold 1025: out of range, want a whole number 1..1024 or auto"},
		{`{"concurrency_threshold":[1]}`, "concurrency_threshold a list: wrong type, want a whole number 1..1024 or auto"},
		{`{"concurrency_threshold":{"a":1}}`, "concurrency_threshold an object: wrong type, want a whole number 1..1024 or auto"},
		{`{"routing_config":1}`, "routing_config 1: wrong type, want an object"},
		{`{"strategy":"RANDOM","tenant_header":"x"}`, `"tenant_header": unknown field, want strategy, prefix_length, concurrency_threshold, policy, pool`},
		{`{"RoutingConfig":{"policy":"long"}}`, `"policy": unknown field, want strategy, prefix_length, concurrency_threshold, policy, pool`},
		{`{"prefix_aware_routing_config":{"strategy":"RANDOM"}}`, `"strategy": unknown field, want strategy, prefix_length, concurrency_threshold, policy, pool`},
		{`{"prefix_length":2048,"prefixLength":2048}`, "prefix_length given twice: repeated field, want one spelling"},
		{`{"strategy":"RANDOM","RoutingConfig":{"RoutingStrategy":"RANDOM"}}`, "strategy given twice: repeated field, want one spelling"},
		{`{"strategy":"RANDOM","strategy":"RANDOM"}`, `"{\"strategy\":\"RANDOM\",\"strategy\":\"RANDOM\"}": malformed, want a JSON object without repeated names`},
		{`{"pool":"llama"}`, "initial_metadata KV_AWARE -1 3 of llama"},
		{`{"pool":"llama","concurrency_threshold":9}`, "initial_metadata KV_AWARE -1 9 of llama"},
		{`{"pool":"llama","policy":"long"}`, "initial_metadata PREFIX_AWARE 16384 7 of llama"},
		{`{"pool":"nobody"}`, `pool "nobody": unknown pool, want the name of a pool of the configuration`},
		{`{"pool":7}`, `pool 7: wrong type, want the name of a pool of the configuration`},
		{`{"strategy":`, `"{\"strategy\":": malformed, want a JSON object without repeated names`},
		{`{} x`, `"{} x": malformed, want a JSON object without repeated names`},
		{strings.Repeat("{\"a\":", 500), `: malformed, want a JSON object without repeated names`},
		{strings.Repeat("x", MaxInitialMetadata+1), "4097 bytes: too long, want at most 4096"},
	} {
		want := tt.want
		if !strings.HasPrefix(want, "initial_metadata ") && want != silence {
			want = "policy in initial_metadata: " + want
			if strings.HasPrefix(tt.want, ":") {
				want = tt.want // any beginning
			}
		}
		r := testResolver(t)
		for _, round := range []string{"read", "cached"} {
			got := describe(r.Resolve(Input{InitialMetadata: tt.text}))
			if got != want && got != silence+"; "+want && !(strings.HasPrefix(want, ":") && strings.HasSuffix(got, want)) {
				t.Errorf("%.80s, %s: %s, want %s", tt.text, round, got, want)
			}
		}
	}
}

func metadataText(fields string) string {
	return `filter_metadata { key: "warmpath" value { ` + fields + ` } } `
}

func TestRouteText(t *testing.T) {
	strategy := `fields { key: "strategy" value { string_value: "PREFIX_AWARE" } }`
	for _, tt := range []struct{ text, want string }{
		{`filter_metadata { key: "istio" value { fields { key: "a" value { string_value: "warmpath" } } } }`, ""},
		{`typed_filter_metadata { key: "warmpath" value { type_url: "x" } }`, ""},
		{`filter_metadata { key: "warmpath" }`, ""},
		{metadataText(""), ""},
		{metadataText(strategy), "route_metadata PREFIX_AWARE -1 0"},
		{metadataText(`fields { key: "strat\145gy" value { string_value: "RAN\x44OM" } }`), "route_metadata RANDOM -1 0"},
		{metadataText(`fields { key: "routing_config" value { struct_value { ` + strategy + ` } } }`), "route_metadata PREFIX_AWARE -1 0"},
		{metadataText(`fields { key: "x" value { } }`) + metadataText(strategy), "route_metadata PREFIX_AWARE -1 0"}, // of two the last counts, as in any map
		{strings.Repeat(" ", maxCachedText) + metadataText(strategy), "route_metadata PREFIX_AWARE -1 0"},

		{metadataText(`fields { key: "strategy" value { string_value: [REDACTED] } }`), "malformed, field \"strategy\": the value is hidden"},
		{metadataText(`fields { key: "strategy" value: [REDACTED] }`), "malformed, field \"strategy\": the value is hidden"},
		{metadataText(`fields { key: "strategy" value { [REDACTED] } }`), "strategy null: wrong type"},
		{`filter_metadata { key: "warmpath" value: [REDACTED] }`, "malformed, the value is hidden"},
		{metadataText(`fields { key: "prefix_length" value { number_value: many } }`), `malformed, field "prefix_length": number "many"`},
		{metadataText(`fields { key: "prefix_length" value { number_value: nan } }`), "prefix_length NaN: out of range"},
		{metadataText(`fields { key: "prefix_length" value { number_value: inf } }`), "prefix_length +Inf: out of range"},
		{metadataText(`fields { key: "prefix_length" value { bool_value: true } }`), "prefix_length true: wrong type"},
		{metadataText(`fields { key: "prefix_length" value { list_value { values { number_value: 1 } } } }`), "prefix_length a list: wrong type"},
		{metadataText(`fields { key: "prefix_length" value { } }`), "prefix_length null: wrong type"},
		{metadataText(`fields { key: "a" value { complex_value: 5 } }`), `malformed, field "a": "complex_value" where a value`},
		{metadataText(`keys { }`), `malformed, "keys" where an object's fields`},
		{`filter_metadata { key: "warmpath" value { `, "malformed, the end where a field"},
		{`filter_metadata { key: "warmpath`, "malformed, a string without an end"},
		{`filter_metadata { key: "warmpath\q" }`, `malformed, unknown escape`},
		{`filter_metadata { key: "warmpath\777" }`, `malformed, escape 777`},
		{`} warmpath`, "malformed, '}' where a field"},
		{"warmpath: \x00", "malformed, a NUL"},
		{"warmpath " + strings.Repeat("a { ", 500), "malformed, nested deeper than 64 levels"},
		{"warmpath: " + strings.Repeat("[", 500), "malformed, nested deeper than 64 levels"},
		{strings.Repeat(" ", MaxText) + metadataText(strategy), "65648 bytes: too long, want at most 65536"},
	} {
		got := describe(testResolver(t).Resolve(Input{RouteText: tt.text}))
		switch {
		case tt.want == "" && got != silence, !strings.Contains(got, tt.want):
			t.Errorf("%.120s: %s, want %s", tt.text, got, tt.want)
		}
	}
}

// Each source hides those behind it, unless it has a fault.
func TestFaultsAreKeptInOrder(t *testing.T) {
	bad, err := structpb.NewStruct(map[string]any{"x": 1, "prefix_length": 3, "strategy": "?"})
	if err != nil {
		t.Fatal(err)
	}
	r := testResolver(t)
	in := Input{InitialMetadata: "nobody", ClusterMetadata: bad, RouteText: metadataText(`fields { key: "policy" value { string_value: "long" } }`)}
	res := r.Resolve(in)
	if res.Origin != FromRouteMetadata || len(res.Faults) != 2 || res.Faults[0].Problem != UnknownPolicy || res.Faults[1].Origin != FromClusterMetadata {
		t.Errorf("Resolve = %s", describe(res))
	}
	for range 50 { // in spite of the random order of a map
		if got := describe(r.Resolve(in)); got != describe(res) {
			t.Fatalf("Resolve = %s, before %s", got, describe(res))
		}
	}
	in.InitialMetadata = "random"
	if got := describe(r.Resolve(in)); got != "initial_metadata RANDOM -1 0" {
		t.Errorf("Resolve = %s", got)
	}
	if got := r.Resolve(Input{InitialMetadata: "nobody"}); len(got.Faults) != 1 {
		t.Errorf("the cached fault has grown: %s", describe(got))
	}
	var fault *Fault
	if !errors.As(error(res.Faults[0]), &fault) {
		t.Error("a Fault is an error")
	}
}

func TestNewInput(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(Key, "first", Key, "last", "other", "x"))
	if in := NewInput(ctx, &extprocv3.ProcessingRequest{}); in != (Input{InitialMetadata: "last"}) {
		t.Errorf("NewInput = %+v", in)
	}
	if in := NewInput(t.Context(), nil); in != (Input{}) {
		t.Errorf("NewInput of nothing = %+v", in)
	}
}

func TestNewResolverRefuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   route.Policy
		fallback route.Policy
		want     string
	}{
		{"ok", route.Policy{}, route.Policy{}, ""},
		{"", route.Policy{}, route.Policy{}, `policy name ""`},
		{"a b", route.Policy{}, route.Policy{}, `policy name "a b"`},
		{"{}", route.Policy{}, route.Policy{}, "not beginning with {"},
		{"ü", route.Policy{}, route.Policy{}, "printable ASCII"},
		{strings.Repeat("a", 65), route.Policy{}, route.Policy{}, "want 1..64"},
		{"p", route.Policy{PrefixLength: 1023}, route.Policy{}, `policy "p": prefix length 1023: want a whole number 1024..65536 or auto`},
		{"p", route.Policy{ConcurrencyThreshold: 1025}, route.Policy{}, `policy "p": concurrency threshold 1025: want`},
		{"p", route.Policy{Strategy: 99}, route.Policy{}, `policy "p": unknown strategy Strategy(99)`},
		{"p", route.Policy{}, route.Policy{PrefixLength: -2}, "default policy: prefix length -2"},
	} {
		_, err := NewResolver(map[string]route.Policy{tt.name: tt.policy}, nil, tt.fallback)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewResolver(%.20q): %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Origins() {
		seen[o.String()] = true
	}
	for _, p := range Problems() {
		seen[p.String()] = true
	}
	if len(seen) != len(originNames)+len(problemNames) || seen[""] || Origin(99).String() != "origin(99)" || Problem(99).String() != "problem(99)" {
		t.Errorf("names: %v", seen)
	}
}
