package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/paste"
)

// warmpath runs a command and returns what it printed and its exit code.
func warmpath(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// printed is what warmpath envoy prints for a stack.
func printed(t *testing.T, s *stack.Stack, args ...string) string {
	t.Helper()
	out, errs, code := warmpath(t.Context(), append([]string{"envoy", "-config", configFile(s)}, args...)...)
	if code != exitOK {
		t.Fatalf("warmpath envoy %q: exit %d: %s", args, code, errs)
	}
	return out
}

func configFile(s *stack.Stack) string {
	return filepath.Join(filepath.Dir(s.EndpointsPath()), "warmpath.yaml")
}

// envoyWith starts an Envoy with a configuration and returns the stack as its clients see
// it, and its admin listener. It waits longer for warmpath than doctor finds right: see
// testenv.Start.
func envoyWith(t *testing.T, s *stack.Stack, config, listener, admin string) (*stack.Stack, string) {
	t.Helper()
	patient := strings.NewReplacer("message_timeout: 0.25s", "message_timeout: 5s", "timeout: 0.3s", "timeout: 5s").Replace(config)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(patient), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := stack.StartProcess("envoy", nil, testenv.Envoy(t), "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "error")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(5 * time.Second); err != nil {
			t.Errorf("%v\n%s", err, p.Output())
		}
	})
	there := *s
	there.URL = "http://" + listener
	body := chat(strings.Repeat("Is it there? ", 200), "q", false)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Await(ctx, func() error {
		got, err := served(ctx, &there, "/v1/chat/completions", body)
		if err == nil && got != home {
			err = fmt.Errorf("served by %s, the home is %s", got, home)
		}
		return err
	}); err != nil {
		t.Fatalf("%v\n%s\n%s", err, p.Output(), config)
	}
	return &there, "http://" + admin
}

// Whatever is printed steers, and doctor finds nothing in the Envoy that runs with it but
// what it was asked for; so it is with the newcomer's gateway, changed by hand or with the
// parts that are printed.
func TestPrintedConfigurationSteers(t *testing.T) {
	s := testenv.StartAsShipped(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0), WithoutEnvoy: true})
	port := s.Replicas.Addresses()[0][strings.LastIndexByte(s.Replicas.Addresses()[0], ':')+1:]
	for _, tt := range []struct {
		name, want string
		config     func(listener, admin string) string
	}{
		{name: "bootstrap", config: func(listener, admin string) string {
			return printed(t, s, "--listener", listener, "--envoy-admin", admin)
		}},
		{name: "by header", config: func(listener, admin string) string {
			return printed(t, s, "--listener", listener, "--envoy-admin", admin, "--steer", "header", "--body", "buffered")
		}},
		{name: "full duplex", want: "body-full-duplex", config: func(listener, admin string) string {
			return printed(t, s, "--listener", listener, "--envoy-admin", admin, "--body", "full-duplex")
		}},
		{name: "parts", config: func(listener, admin string) string {
			whole, err := paste.Into([]byte(newcomer(t, "before", port, listener, admin)), []byte(printed(t, s, "--for", "filter")))
			if err != nil {
				t.Fatal(err)
			}
			return string(whole)
		}},
		{name: "after", config: func(listener, admin string) string {
			host, extProc, _ := strings.Cut(s.ExtProc(), ":")
			return strings.Replace(newcomer(t, "after", port, listener, admin), "address: 127.0.0.1, port_value: 9002", "address: "+host+", port_value: "+extProc, 1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listener, admin := freeAddress(t), freeAddress(t)
			there, envoyAdmin := envoyWith(t, s, tt.config(listener, admin), listener, admin)
			for i := range 4 {
				body := chat(strings.Repeat(fmt.Sprintf("Rule %d of the %s. ", i, tt.name), 80), "q", i%2 == 0)
				home := homesOf(t, s, "/v1/chat/completions", body)[0]
				if got, err := served(t.Context(), there, "/v1/chat/completions", body, "x-gateway-destination-endpoint", "127.0.0.1:1"); err != nil || got != home {
					t.Errorf("served by %s (%v), the home is %s", got, err, home)
				}
			}
			args := []string{"doctor", "--json", "--admin", envoyAdmin}
			if tt.name != "after" { // whose cluster has another name
				args = append(args, "-config", configFile(s))
			}
			got := slices.DeleteFunc(ids(t, args...), func(id string) bool { return id == "message-timeout" })
			if !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("doctor found %q, want %q", got, tt.want)
			}
			if tt.name != "bootstrap" && tt.name != "after" {
				return
			}
			out, errs, code := warmpath(t.Context(), "doctor", "--live", there.URL, "-config", configFile(s))
			if want := "6 probes: 6 decided by warmpath, 6 served where it decided; 3 sent again, 3 of them to the same server, of which 3 found"; code != exitOK || !strings.Contains(out, want) {
				t.Errorf("doctor --live: exit %d\n%s%s", code, out, errs)
			}
		})
	}
	noMisses(t, s)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := stack.FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// newcomer is the gateway of a story, at other ports.
func newcomer(t *testing.T, story, servers, listener, admin string) string {
	t.Helper()
	config, err := os.ReadFile("../../examples/" + story + "/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("port_value: 8000", "port_value: "+servers, "port_value: 10000", "port_value: "+listener[len("127.0.0.1:"):],
		"port_value: 9901", "port_value: "+admin[len("127.0.0.1:"):]).Replace(string(config))
}

// ids are those of what doctor finds, in its order.
func ids(t *testing.T, args ...string) (ids []string) {
	t.Helper()
	out, errs, _ := warmpath(t.Context(), args...)
	var e examination
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, f := range e.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}

// busy returns the address of a gateway before a gateway, which has that many other
// requests before the answer to the first probe is there.
func busy(t *testing.T, gateway string, others int) string {
	t.Helper()
	there, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	proxy, once := httputil.NewSingleHostReverseProxy(there), sync.Once{}
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.Method == http.MethodPost {
			once.Do(func() { visit(t, gateway+"/v1/models", others) })
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// visit gets a page so many times.
func visit(t *testing.T, page string, times int) {
	t.Helper()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for range times {
		answer, err := client.Get(page)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}

// Probes show what is wrong with a gateway that runs: servers without a cache, one that
// does not ask warmpath, and none. They are found again behind an Envoy at the edge, which
// replaces clients' x-request-id, among more requests than the live page keeps.
func TestDoctorLive(t *testing.T) {
	cold := fast
	cold.Engine.BlockTokens = 1 << 14 // no prompt fills one, so nothing is cached
	s := testenv.StartAsShipped(t, stack.Options{Replica: cold, Replicas: 3, Config: prefixAware(0), WithoutEnvoy: true})
	listener, admin := freeAddress(t), freeAddress(t)
	manager := "stat_prefix: llm\n"
	edge := strings.Replace(printed(t, s, "--listener", listener, "--envoy-admin", admin), manager, manager+"          use_remote_address: true\n", 1)
	if !strings.Contains(edge, "use_remote_address") {
		t.Fatalf("no %q in what is printed", manager)
	}
	there, _ := envoyWith(t, s, edge, listener, admin)
	if got := ids(t, "doctor", "--json", "--live", busy(t, there.URL, 300), "-config", configFile(s)); !slices.Equal(got, []string{"probe-cold", "probe-cold", "probe-cold"}) {
		t.Errorf("without a cache: found %q", got)
	}
	if got := ids(t, "doctor", "--json", "--live", "http://"+s.Replicas.Addresses()[0], "-config", configFile(s)); !slices.Equal(got, []string{"probe-unseen"}) {
		t.Errorf("past warmpath: found %q", got)
	}
	if got := ids(t, "doctor", "--json", "--live", "http://"+freeAddress(t), "-config", configFile(s)); !slices.Equal(got, []string{"probe-failed"}) {
		t.Errorf("nobody there: found %q", got)
	}
}
