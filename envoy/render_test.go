package envoy_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/envoy"
)

var two = []string{"10.0.0.1:8000", "[fd00::2]:8000"}

// variants are options of every kind.
func variants() map[string]envoy.Options {
	files := &envoy.TLS{ServerName: "warmpath", CA: "certs/ca.pem", Cert: "certs/a.pem", Key: "certs/a.key", CASecret: "./ca.yaml", CertSecret: "./a.yaml"}
	return map[string]envoy.Options{
		"other names":            {Pool: "llm.pool", TenantHeader: "x-tenant", BodyLimit: 1 << 20},
		"no inspection":          {WithoutInspection: true},
		"no bodies":              {Body: envoy.BodyNone},
		"nothing to ask for":     {Body: envoy.BodyNone, WithoutInspection: true},
		"buffered":               {Body: envoy.BodyBuffered},
		"full duplex":            {Body: envoy.BodyFullDuplex},
		"endpoints of its own":   {Endpoints: two},
		"no endpoints yet":       {Endpoints: []string{}},
		"steered by header":      {Endpoints: two, HeaderSteering: true, Pool: "vllm"},
		"ext_proc over TLS only": {TLS: files, Secured: []string{envoy.ExtProcCluster}},
		"closing engines":        {RequestsPerConnection: 1, Endpoints: two},
		"traced in part":         {Collector: "otel:4317", Sampling: 12.5, Endpoints: two},
	}
}

// Without options it is what is shipped, and each option changes what it is for.
func TestRender(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := envoy.Render(envoy.Options{})
	if err != nil || !bytes.Equal(plain, shipped) {
		t.Errorf("without options it is not bootstrap.yaml (%v)", err)
	}
	for name, want := range map[string]struct{ has, lacks []string }{
		"other names":            {[]string{"cluster: llm.pool", "cluster, llm.pool, comes", "header_name: x-tenant", "request_body_buffer_limit: 1048576"}, []string{"warmpath_pool", "4194304", "x-amzn"}},
		"no inspection":          {[]string{"{request_body_mode: BUFFERED,"}, []string{"STREAMED"}},
		"no bodies":              {[]string{"request_body_mode: NONE\n", "response_body_mode: STREAMED"}, []string{"{request_body_mode: BUFFERED"}},
		"nothing to ask for":     {[]string{"allow_mode_override: false"}, []string{"allowed_override_modes"}},
		"buffered":               {[]string{"request_body_mode: BUFFERED\n", "{request_body_mode: NONE, response_header_mode: SEND, response_trailer_mode: SEND}"}, nil},
		"full duplex":            {[]string{"request_body_mode: FULL_DUPLEX_STREAMED\n                request_trailer_mode: SEND\n"}, []string{"{request_body_mode: BUFFERED"}},
		"endpoints of its own":   {[]string{`address: "10.0.0.1", port_value: 8000`, `address: "fd00::2"`, "type: STATIC\n", "override_host"}, []string{"dynamic_resources", "warmpath_xds", "eds", "CDS", "validate_clusters", "other_pools"}},
		"steered by header":      {[]string{"- header: x-gateway-destination-endpoint", "{remove: x-gateway-destination-endpoint}", "  - name: vllm\n"}, []string{"request_headers_to_remove", "- metadata: {key"}},
		"ext_proc over TLS only": {[]string{"transport_socket:"}, nil},
		"closing engines":        {[]string{"    common_http_protocol_options: {max_requests_per_connection: 1}\n"}, []string{"#   typed_extension"}},
		"traced in part":         {[]string{"{numerator: 125000, denominator: MILLION}", "name: otlp"}, []string{"# tracing"}},
	} {
		got, err := envoy.Render(variants()[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, text := range want.has {
			if !bytes.Contains(got, []byte(text)) {
				t.Errorf("%s: no %q in\n%s", name, text, got)
			}
		}
		for _, text := range want.lacks {
			if bytes.Contains(got, []byte(text)) {
				t.Errorf("%s: %q in\n%s", name, text, got)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for want, o := range map[string]envoy.Options{
		"metadata only":                    {HeaderSteering: true},
		`cluster "a b"`:                    {Pool: "a b"},
		`tenant header "a: b"`:             {TenantHeader: "a: b"},
		"body limit -1":                    {BodyLimit: -1},
		`body mode "streamed"`:             {Body: "streamed"},
		`endpoint "gpu-1:80": want ip`:     {Endpoints: []string{"gpu-1:80"}},
		"sampling 101":                     {Collector: "a:1", Sampling: 101},
		"sampling 1e-06":                   {Collector: "a:1", Sampling: 0.000001},
		"the CA is missing":                {TLS: &envoy.TLS{ServerName: "a"}},
		`xds address: "a": want host:port`: {Addresses: envoy.Addresses{XDS: "a"}},
	} {
		for name, print := range map[string]func(envoy.Options) ([]byte, error){"Render": envoy.Render, "Filter": envoy.Filter} {
			if _, err := print(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// The parts are YAML, each under a heading, and say what the whole file says.
func TestFilter(t *testing.T) {
	for name, o := range variants() {
		got, err := envoy.Filter(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		whole, err := envoy.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		parts := bytes.Split(got, []byte("\n---\n"))
		for i, part := range parts[1:] {
			if !bytes.HasPrefix(part, []byte("# "+string(rune('1'+i))+". ")) {
				t.Errorf("%s: part %d has no heading:\n%s", name, i+1, part)
			}
		}
		for line := range bytes.Lines(got) {
			text := bytes.TrimSpace(line)
			if len(text) > 0 && text[0] != '#' && !bytes.Equal(text, []byte("---")) && !bytes.Contains(whole, bytes.TrimPrefix(text, []byte("- "))) {
				t.Errorf("%s: %q is not in the whole file", name, text)
			}
		}
		decoder := yaml.NewDecoder(bytes.NewReader(got))
		for n := 0; ; n++ {
			var document yaml.Node
			if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
				if n != len(parts)-1 {
					t.Errorf("%s: %d documents in %d parts", name, n, len(parts)-1)
				}
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, got)
			}
		}
	}
}
