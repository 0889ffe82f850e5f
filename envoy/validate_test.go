package envoy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/envoybin"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// TestEnvoyAcceptsWhatWeShip runs the real Envoy's own check over every file.
func TestEnvoyAcceptsWhatWeShip(t *testing.T) {
	bootstrap, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := envoy.Bootstrap(envoy.Addresses{Admin: "[::1]:1901", Listener: "0.0.0.0:80", ExtProc: "warmpath:9002", XDS: "[::1]:9003"})
	if err != nil {
		t.Fatal(err)
	}
	pipes, err := envoy.Bootstrap(envoy.Addresses{ExtProc: "unix:/run/ext proc.sock", XDS: "unix:/run/xds.sock"})
	if err != nil {
		t.Fatal(err)
	}
	dir, ca := t.TempDir(), authority.New(t, "ca")
	cert, key := ca.Issue(t, nil, "envoy").Write(t, dir, "envoy")
	authority.Replace(t, filepath.Join(dir, "ca.pem"), ca.PEM())
	tls := envoy.TLS{
		ServerName: "warmpath", CA: filepath.Join(dir, "ca.pem"), Cert: cert, Key: key,
		CASecret: filepath.Join(dir, "ca.yaml"), CertSecret: filepath.Join(dir, "envoy.yaml"),
	}
	secured, err := envoy.WithTLS(bootstrap, tls)
	if err != nil {
		t.Fatal(err)
	}
	traced, err := envoy.WithTracing(bootstrap, "otel.example:4317")
	if err != nil {
		t.Fatal(err)
	}
	both, err := envoy.WithTracing(secured, "[::1]:4317")
	if err != nil {
		t.Fatal(err)
	}
	caSecret, certSecret, err := tls.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	authority.Replace(t, tls.CASecret, caSecret)
	authority.Replace(t, tls.CertSecret, certSecret)
	type accepted = struct {
		name, config, refusal string
	}
	tests := []accepted{
		{name: "bootstrap", config: string(bootstrap)},
		{name: "bootstrap with other addresses", config: string(moved)},
		{name: "bootstrap with Unix sockets", config: string(pipes)},
		{name: "bootstrap with TLS", config: string(secured)},
		{name: "bootstrap with tracing", config: string(traced)},
		{name: "bootstrap with TLS and tracing", config: string(both)},
		{name: "the example with tracing", config: read(t, "../examples/tracing/envoy.yaml")},
		{name: "bootstrap with an access log", config: read(t, "../examples/access-log/envoy.yaml")},
		{name: "cluster", config: withPool(string(bootstrap), string(envoy.Cluster()))},
		{name: "cluster with the advice of its comment", config: withPool(string(bootstrap), uncommentAdvice(t, string(envoy.Cluster())))},
		// The two that prove the check sees anything at all.
		{name: "unknown field", config: strings.Replace(string(bootstrap), "failure_mode_allow:", "failure_mode_alow:", 1), refusal: "failure_mode_alow"},
		{name: "no secret", config: strings.Replace(string(secured), "envoy.yaml", "absent.yaml", 1), refusal: "absent.yaml"},
		{name: "no fallback", config: withPool(string(bootstrap), strings.Replace(string(envoy.Cluster()), "fallback_policy:", "x:", 1)), refusal: "fallback"},
	}
	for _, name := range []string{"yes", "No", "ON", "y", "1.5", "null"} { // none is a text for Envoy, or for another reader
		for kind, o := range map[string]envoy.Options{"": {Pool: name}, "header ": {TenantHeader: name}, "own ": {Pool: name, Endpoints: []string{"10.0.0.1:80"}}} {
			config, err := envoy.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, accepted{name: kind + name, config: string(config)})
		}
	}
	for name, o := range variants() {
		if o.TLS != nil {
			o.TLS = &tls
		}
		config, err := envoy.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, accepted{name: name, config: string(config)})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := validate(t, tt.config)
			switch {
			case tt.refusal == "" && err != nil:
				t.Errorf("Envoy refuses it: %v\n%s", err, out)
			case tt.refusal != "" && (err == nil || !strings.Contains(out, tt.refusal)):
				t.Errorf("want a refusal that names %q, got %v\n%s", tt.refusal, err, out)
			case strings.Contains(strings.ToLower(out), "deprecated"):
				t.Errorf("Envoy says:\n%s", out)
			}
		})
	}
}

func validate(t *testing.T, config string) (string, error) {
	t.Helper()
	root, err := envoybin.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	binary, _, err := envoybin.Find(t.Context(), envoybin.PlacesFrom(os.Getenv, root))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--disable-hot-restart", "-l", "warn", "-c", file).CombinedOutput()
	return string(out), err
}

// withPool adds the pool's cluster to the static ones, where --mode validate
// looks at it; what comes by xDS it never sees.
func withPool(bootstrap, cluster string) string {
	lines := strings.Split(strings.TrimRight(cluster, "\n"), "\n")
	return bootstrap + "\n  - " + strings.Join(lines, "\n    ") + "\n"
}

// uncommentAdvice does what the indented block that ends cluster.yaml tells the user
// to do.
func uncommentAdvice(t *testing.T, cluster string) string {
	t.Helper()
	before, block, ok := strings.Cut(cluster, "#   typed_extension_protocol_options:\n")
	if !ok {
		t.Fatal("cluster.yaml has no commented typed_extension_protocol_options")
	}
	return before + "typed_extension_protocol_options:\n" + strings.ReplaceAll(block, "#   ", "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
