package doctor_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// start runs an Envoy with a configuration that listens on the shipped addresses, on
// others, and returns them.
func start(t *testing.T, config string) (listener, admin string) {
	t.Helper()
	var ports []string
	for _, shipped := range []string{"port_value: 10000", "port_value: 9901"} {
		port, err := stack.FreePort("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(config, shipped) != 1 {
			t.Fatalf("%q is not there once", shipped)
		}
		config = strings.Replace(config, shipped, fmt.Sprint("port_value: ", port), 1)
		ports = append(ports, fmt.Sprint("http://127.0.0.1:", port))
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := stack.StartProcess("envoy", nil, testenv.Envoy(t), "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "error")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Await(ctx, func() error {
		_, err := fetch(ctx, ports[1]+"/ready")
		return err
	}); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	return ports[0], ports[1]
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, data)
	}
	return data, err
}

// What an Envoy that runs says of its configuration leads to what its file leads to.
func TestFaultsOfARunningEnvoy(t *testing.T) {
	for _, id := range []string{
		"no-trailers", "fails-closed", "filter-off", "client-headers", "route-timeout", "body-limit", "pool-breakers", "ext-proc-health", "members-missing", "",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			f := fault{base: own}
			if i := slices.IndexFunc(faults, func(f fault) bool { return f.id == id }); i >= 0 {
				f = faults[i]
				f.base = own
			}
			if id == "route-timeout" { // which the file with the control plane has twice
				f.from, f.to = poolRoute+"                  timeout: 0s", poolRoute+"                  timeout: 60s"
			}
			config := strings.Replace(string(f.config(t)), "thresholds: [{max", "thresholds: [{max", 1)
			_, admin := start(t, config)
			dump, err := fetch(t.Context(), admin+"/config_dump?include_eds")
			if err != nil {
				t.Fatal(err)
			}
			d, err := doctor.ReadLive("envoy", dump)
			if err != nil {
				t.Fatal(err)
			}
			findings, err := doctor.Examine(d, f.settings())
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range findings {
				if found.ID != id || found.Line != 0 || !strings.HasPrefix(found.Path, "configs[") {
					t.Errorf("found %s at %s (line %d): %s", found.ID, found.Path, found.Line, found.Found)
				}
			}
			if len(findings) == 0 && id != "" {
				t.Errorf("%s: not found in %.3000s", id, dump)
			}
		})
	}
}

// Routes that came over RDS are looked at in what a running Envoy says, and told of in its
// file.
func TestDeliveredRoutesAreSeen(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(shipped), "          route_config:\n")
	i := strings.Index(rest, "          http_filters:")
	if i < 0 {
		t.Fatal("the file has another form")
	}
	const resource = `resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: llm
  virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: warmpath_pool, timeout: 60s}}]}]
`
	file := filepath.Join(t.TempDir(), "rds.yaml")
	if err := os.WriteFile(file, []byte(resource), 0o600); err != nil {
		t.Fatal(err)
	}
	config := before + "          rds: {route_config_name: llm, config_source: {path_config_source: {path: " + file + "}, resource_api_version: V3}}\n" + rest[i:]
	_, admin := start(t, config)
	dump, err := fetch(t.Context(), admin+"/config_dump?include_eds")
	if err != nil {
		t.Fatal(err)
	}
	has := func(findings []doctor.Finding, id string) bool {
		return slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.ID == id })
	}
	if inFile := examine(t, "envoy.yaml", []byte(config), setup()); !has(inFile, "not-seen") || has(inFile, "route-timeout") {
		t.Errorf("in the file: %+v", inFile)
	}
	if running := examine(t, "dump.json", dump, setup()); has(running, "not-seen") || !has(running, "route-timeout") {
		t.Errorf("in what runs: %+v", running)
	}
}

// Envoy's timeouts end answers that stream, and requests that wait.
func TestShortTimeoutCutsStreams(t *testing.T) {
	shipped, err := os.ReadFile("../../examples/before/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const length = 3000 // ms
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			await(r.Context(), length)
		}
		for range length / 100 {
			if r.URL.Path != "/silent" {
				await(r.Context(), 100)
			}
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(slow.Close)
	port := slow.URL[strings.LastIndexByte(slow.URL, ':')+1:]
	upstream := strings.NewReplacer("port_value: 8000", "port_value: "+port, "127.0.0.2", "127.0.0.1", "127.0.0.3", "127.0.0.1", "retry_policy", "# retry_policy")
	for name, tt := range map[string]struct {
		from, to, path string
		whole          bool
	}{
		"no timeout":        {"timeout: 300s", "timeout: 0s", "/", true},
		"a second":          {"timeout: 300s", "timeout: 1s", "/", false},
		"silent":            {"timeout: 300s", "timeout: 0s", "/silent", true},
		"silent, a second":  {"stat_prefix: llm", "stat_prefix: llm\n          stream_idle_timeout: 1s", "/silent", false},
		"cluster, a second": {"    connect_timeout: 1s\n", "    connect_timeout: 1s\n    common_http_protocol_options: {max_stream_duration: 1s}\n", "/", false},
		"try, a second":     {"timeout: 300s", "timeout: 300s\n                  retry_policy: {per_try_idle_timeout: 1s}", "/silent", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, _ := start(t, strings.Replace(upstream.Replace(string(shipped)), tt.from, tt.to, 1))
			data, err := fetch(t.Context(), listener+tt.path)
			if whole := err == nil && strings.Count(string(data), "data: x\n\n") == length/100; whole != tt.whole {
				t.Errorf("the answer is whole: %v (%d bytes, %v)", whole, len(data), err)
			}
		})
	}
}

// await waits some milliseconds, or until nobody wants to know any more.
func await(ctx context.Context, ms int) {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
