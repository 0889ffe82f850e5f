package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
)

var tls = &envoy.TLS{ServerName: "warmpath", CA: "c/ca.pem", Cert: "c/a.pem", Key: "c/a.key", CASecret: "./ca.yaml", CertSecret: "./a.yaml"}

// setup is warmpath with its defaults.
func setup() doctor.Setup {
	return doctor.Setup{
		BodyLimit: envoy.BodyLimit, Pools: []string{envoy.PoolCluster}, TenantHeader: "x-amzn-sagemaker-prefix-aware-id",
		Inspection: true, Retries: true, ControlPlane: true,
	}
}

func document(t *testing.T, name, config string) *doctor.Document {
	t.Helper()
	d, err := doctor.Read(name, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func examine(t *testing.T, name string, config []byte, s doctor.Setup) []doctor.Finding {
	t.Helper()
	findings, err := doctor.Examine(document(t, name, string(config)), s)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// What is shipped has nothing wrong with it, whatever it is asked for; what is asked for
// and has a drawback is told of it.
func TestNothingInWhatIsShipped(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/envoy.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "before" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range examine(t, file, data, setup()) {
			t.Errorf("%s: %s: %s", f.Where(), f.ID, f.Found)
		}
	}
	two := []string{"10.0.0.1:8000", "[fd00::2]:8000"}
	for _, tt := range []struct {
		o      envoy.Options
		change func(*doctor.Setup)
		want   string
	}{
		{o: envoy.Options{}},
		{o: envoy.Options{TLS: tls, Collector: "otel:4317", Sampling: 1}},
		{o: envoy.Options{TLS: tls, Secured: []string{envoy.XDSCluster}}, change: func(s *doctor.Setup) { s.Known, s.TLSXDS = true, true }},
		{o: envoy.Options{Addresses: envoy.Addresses{ExtProc: "unix:/run/a.sock", XDS: "unix:/run/b.sock"}}, change: listening("unix:/run/a.sock", "unix:/run/b.sock")},
		{o: envoy.Options{Addresses: envoy.Addresses{ExtProc: "[::1]:9002", XDS: "localhost:9003"}}, change: listening("127.0.0.1:9002", "127.0.0.1:9003")},
		{o: envoy.Options{Addresses: envoy.Addresses{ExtProc: "warmpath:9102", XDS: "10.0.0.9:9103"}}, change: listening("127.0.0.1:9002", "127.0.0.1:9003")},
		{o: envoy.Options{TLS: tls, Addresses: envoy.Addresses{ExtProc: "warmpath:9002", XDS: "warmpath:9003"}}, change: known}, // to a sidecar
		{o: envoy.Options{Endpoints: two}, change: func(s *doctor.Setup) { s.Known, s.ControlPlane, s.Members = true, false, two }},
		{o: envoy.Options{Endpoints: []string{"[::ffff:10.0.0.1]:8000", "[FD00:0:0::0:2]:8000"}}, change: func(s *doctor.Setup) { s.Known, s.ControlPlane, s.Members = true, false, two }},
		{o: envoy.Options{Endpoints: two, HeaderSteering: true}},
		{o: envoy.Options{Pool: "llm", TenantHeader: "x-tenant", BodyLimit: 1 << 20}, change: func(s *doctor.Setup) {
			s.Known, s.Pools, s.TenantHeader, s.BodyLimit = true, []string{"llm"}, "x-tenant", 1<<20
		}},
		{o: envoy.Options{WithoutInspection: true}, change: func(s *doctor.Setup) { s.Inspection = false }},
		{o: envoy.Options{WithoutInspection: true}, want: "no-inspection"},
		{o: envoy.Options{Body: envoy.BodyBuffered}},
		{o: envoy.Options{Body: envoy.BodyNone}, want: "body-never"},
		{o: envoy.Options{Body: envoy.BodyFullDuplex}, want: "body-full-duplex"},
	} {
		config, err := envoy.Render(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		s := setup()
		if tt.change != nil {
			tt.change(&s)
		}
		got := ""
		for _, f := range examine(t, "envoy.yaml", config, s) {
			got += f.ID + " "
		}
		if got != "" && got != tt.want+" " || got == "" && tt.want != "" {
			t.Errorf("%s: found %q, want %q", fmt.Sprintf("%+v", tt.o), got, tt.want)
		}
	}
}

// early has the client's headers of Envoy's removed by matchers.
func early(matchers ...string) fault {
	return fault{base: own, change: func(text string) string {
		for _, h := range []string{"retry-on", "retry-grpc-on", "max-retries", "retriable-status-codes", "retriable-header-names", "hedge-on-per-try-timeout", "upstream-rq-timeout-ms", "upstream-rq-per-try-timeout-ms", "upstream-stream-duration-ms"} {
			text = strings.Replace(text, "              - {remove: x-envoy-"+h+"}\n", "", 1)
		}
		return strings.Replace(text, removed, removed+"              - {remove_on_match: {key_matcher: "+strings.Join(matchers, "}}\n              - {remove_on_match: {key_matcher: ")+"}}\n", 1)
	}}
}

// What is written otherwise and means the same, or is nobody's business, is no fault.
func TestHarmless(t *testing.T) {
	const limit = "                request_body_buffer_limit: 4194304\n"
	off := "                  warmpath.ext_proc:\n" + `                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute` + "\n                    disabled: true\n"
	for name, f := range map[string]fault{
		"everything may be asked for":  {from: "              allowed_override_modes:\n" + bufferedLine + "              - {request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND}\n", to: ""},
		"lower camel case":             {from: "failure_mode_allow: true", to: "failureModeAllow: true"},
		"ignored":                      {from: "node: {", to: "!ignore mine: {a: 1}\nnode: {"},
		"an empty document at the end": {from: "node: {", to: "node: {"},
		"the last of two counts":       {from: "node: {", to: "node: {id: a}\nnode: {"},
		"a truth value of YAML 1.1":    {from: "failure_mode_allow: true", to: "failure_mode_allow: yes"},
		"a truth value in quotes":      {from: "failure_mode_allow: true", to: "failure_mode_allow: \"T\""},
		"numbers for words":            {from: "response_trailer_mode: SEND\n", to: "response_trailer_mode: 1\n"},
		"a type that is not known":     {from: router, to: "          - {name: mine, typed_config: {\"@type\": type.googleapis.com/of.Mine, a: 1}}\n" + router},
		"buffered by the listener":     {base: own, from: limit, to: "                request_body_buffer_limit: 65536\n"},
		"the nearest settings count":   {from: route, to: route + "                typed_per_filter_config:\n" + strings.Replace(off, "disabled: true", "overrides: {failure_mode_allow: true}", 1)},
		"on for this route only": {base: own, from: route, to: route + "                typed_per_filter_config:\n                  warmpath.ext_proc:\n" +
			`                    "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig` + "\n                    config:\n" +
			`                      "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute` + "\n                      overrides: {}\n"},
		"told of this route only":         {base: own, from: route, to: perRoute("overrides: {processing_mode: {response_trailer_mode: SEND}}")},
		"switched on by the route":        {base: own, change: strings.NewReplacer(filterStart, filterStart+"            disabled: true\n", route, on("warmpath.ext_proc", ofAny, "config: {}")).Replace},
		"off further away":                {base: own, change: onHost(ofAny, "disabled: true", ofExtProc, "overrides: {}")},
		"off further away, by it":         {base: own, change: onHost(ofExtProc, "disabled: true", ofExtProc, "overrides: {}")},
		"a buffer that is off":            {from: filterStart, to: switchedOff(whole) + filterStart},
		"a buffer that is off here":       {base: own, change: with(whole, filterStart, on("whole", ofBuffer, "disabled: true"))},
		"a larger buffer here":            {base: own, change: with(whole, filterStart, on("whole", ofBuffer, "buffer: {max_request_bytes: 8388608}"))},
		"nothing buffered to be asked":    {base: own, change: with(auth, filterStart, on("auth", ofAuth, "check_settings: {disable_request_body_buffering: true}"))},
		"another ext_proc that is off":    {from: filterStart, to: switchedOff(another) + filterStart},
		"another that is off here":        {base: own, change: with(another, filterStart, on("another", ofExtProc, "disabled: true"))},
		"another that is off here, by it": {base: own, change: with(another, filterStart, on("another", ofAny, "disabled: true"))},
		"another may ask for headers":     {from: filterStart, to: anotherQuiet + "              allow_mode_override: true\n              allowed_override_modes: [{response_header_mode: SKIP}]\n" + filterStart},
		"hashed by what the cluster says": {base: own, change: strings.NewReplacer(hashPolicy, "", poolStart, ofPool("hash_policy: [{header: {header_name: x-amzn-sagemaker-prefix-aware-id}}]")).Replace},
		"the cluster's retries hold":      {base: own, change: strings.NewReplacer("num_retries: 2", "num_retries: 2\n                    retry_on: 5xx", poolStart, ofPool("retry_policy: {num_retries: 2, "+notSame+"}")).Replace},
		"only those that may be set":      {from: "{allow_envoy: true}", to: `{disallow_all: true, disallow_is_error: true, allow_expression: {regex: "x-(envoy|gateway|warmpath)-.*"}}`},
		"a part of no name":               {from: "{allow_envoy: true}", to: `{allow_envoy: true, disallow_is_error: true, disallow_expression: {regex: "x-envoy"}}`},
		"removed by a part of the name":   early("{contains: retr}", "{contains: max-}", "{contains: hedge}", "{contains: upstream}"),
		"removed by an expression":        early(`{safe_regex: {regex: "x-(envoy|gateway)-.*"}}`),
		"removed by the whole name":       early("{exact: X-ENVOY-RETRY-ON, ignore_case: true}", `{safe_regex: {regex: "x-envoy-[^r].*|x-envoy-ret.*-[^o].*|x-envoy-retry-grpc-on"}}`),
		"removed by the end of the name":  early("{suffix: -on}", "{suffix: -ms}", "{suffix: names}", "{suffix: codes}", "{suffix: retries}", "{suffix: timeout}"),
		"no limit of bodies":              {base: own, from: limit, to: "                request_body_buffer_limit: 18446744073709551615\n"},
		"another key beside the choice":   {base: own, from: filterStart, to: strings.Replace(picked("x-pick"), "key: x-gateway-destination-endpoint", "key: stage", 1) + filterStart},
		"written, but not a client's":     {base: own, from: filterStart, to: picked("X-Gateway-Destination-Endpoint") + filterStart},
		"mirrored to others":              {base: own, from: poolRoute, to: poolRoute + "                  request_mirror_policies: [{cluster: warmpath_ext_proc}]\n"},
		"mirrored elsewhere here":         {base: own, change: strings.NewReplacer(poolRoute, poolRoute+"                  request_mirror_policies: [{cluster: warmpath_pool}]\n", poolStart, ofPool("request_mirror_policies: [{cluster: warmpath_ext_proc}]")).Replace},
		"asked once of two":               {base: own, from: router, to: switchedOff(strings.Replace(anotherQuiet, "warmpath_xds", "warmpath_ext_proc", 1)) + router},
		"written by a filter that is off": {base: own, from: filterStart, to: switchedOff(picked("x-pick")) + filterStart},
		"another's control plane":         {from: "warmpath_xds", to: "xds-grpc"},
	} {
		config := string(f.config(t))
		switch name {
		case "an empty document at the end":
			config += "---\n---\n# nothing\n"
		case "buffered by the listener":
			config = strings.Replace(config, "  - name: llm\n    address:", "  - name: llm\n    per_connection_buffer_limit_bytes: 8388608\n    address:", 1)
		case "the nearest settings count":
			config = strings.Replace(config, "            - name: llm\n", "            - name: llm\n              typed_per_filter_config:\n"+off, 1)
			config = strings.Replace(config, "              - name: other_pools\n", "              - name: other_pools\n                typed_per_filter_config:\n"+strings.Replace(off, "disabled: true", "overrides: {}", 1), 1)
		case "on for this route only", "told of this route only":
			web := "              - {name: web, match: {prefix: /web}, route: {cluster: warmpath_ext_proc}}\n"
			config = strings.Replace(config, route, web+route, 1)
			if name == "on for this route only" {
				config = strings.Replace(config, filterStart, filterStart+"            disabled: true\n", 1)
				break
			}
			config = strings.NewReplacer("request_header_mode: SEND\n", "request_header_mode: SKIP\n", "response_header_mode: SEND        #", "response_header_mode: SKIP        #",
				"                response_trailer_mode: SEND\n", "").Replace(config)
		case "another's control plane":
			config = strings.Replace(config, "api_type: DELTA_GRPC", "api_type: GRPC", 1)
		}
		for _, found := range examine(t, "envoy.yaml", []byte(config), setup()) {
			t.Errorf("%s: found %s at %s: %s", name, found.ID, found.Where(), found.Found)
		}
	}
}

// JSON has its lines too, and lower camel case its places.
func TestJSON(t *testing.T) {
	config := "{\n\"admin\": {\n\"address\": {\"socketAddress\": {\"address\": \"0.0.0.0\", \"portValue\": 1}}},\n\"staticResources\": {}\n}"
	var got []string
	for _, f := range examine(t, "envoy.json", []byte(config), setup()) {
		got = append(got, f.ID+" "+f.Where())
	}
	if want := "no-ext-proc envoy.json:1:1, admin-open envoy.json:3:1"; strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	long := strings.Repeat("k", 2000)
	config = `{"node": {"id": "a\/b\ud83d\ude00", "cluster": "é", "metadata": {"` + long + `": 1}},` + "\n\t\"é\": 1, \"admin\" : {\"address\": {\"socket_address\": {\"address\": \"0.0.0.0\"}}}}"
	got = nil
	for _, f := range examine(t, "envoy.json", []byte(config), setup()) {
		got = append(got, f.ID+" "+f.Where())
	}
	if want := "no-ext-proc envoy.json:1:1, unknown envoy.json:2:2, admin-open envoy.json:2:21"; strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	camel := "staticResources: {listeners: [{filterChains: [{filters: [{name: hcm, typedConfig: {\n\"@type\": " +
		"type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,\n  httpFilters: []}}]}]}]}"
	for _, f := range examine(t, "camel.yaml", []byte(camel), setup()) {
		if f.ID == "no-ext-proc" && f.Where() != "camel.yaml:3:3" {
			t.Errorf("%s is at %s", f.ID, f.Where())
		}
	}
}

// A finding is where Envoy reads, and not at a key that it leaves out.
func TestIgnoredKeysAreNoPlaces(t *testing.T) {
	const config = "admin: {address: {socket_address: {address: 0.0.0.0}}}\n!ignore admin: {address: 1}\n"
	for _, f := range examine(t, "envoy.yaml", []byte(config), setup()) {
		if f.ID == "admin-open" && f.Line == 1 {
			return
		}
	}
	t.Error("no admin-open in the first line")
}
