package xds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/envoybin"
)

// realEnvoy is an Envoy process that runs the shipped bootstrap.
type realEnvoy struct {
	t               *testing.T
	admin, listener string
	xds             string // where it looks for the control plane
	output          *lockedBuffer
}

// startEnvoy starts a process that looks for its control plane at a free port,
// and kills it at the end of the test. Pairs of texts are replaced in the
// bootstrap first.
func startEnvoy(t *testing.T, replace ...string) *realEnvoy {
	t.Helper()
	root, err := envoybin.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	binary, _, err := envoybin.Find(t.Context(), envoybin.PlacesFrom(os.Getenv, root))
	if err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 4)
	e := &realEnvoy{t: t, admin: ports[0], listener: ports[1], xds: ports[2], output: new(lockedBuffer)}
	config, err := envoy.Bootstrap(envoy.Addresses{Admin: e.admin, Listener: e.listener, XDS: e.xds, ExtProc: ports[3]})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if bytes.Count(config, []byte(replace[i])) != 1 {
			t.Fatalf("bootstrap.yaml does not have %q once", replace[i])
		}
		config = bytes.Replace(config, []byte(replace[i]), []byte(replace[i+1]), 1)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-c", file, "--disable-hot-restart", "--concurrency", "2", "-l", "warn",
		"--component-log-level", "ext_proc:error") // there is no warmpath to ask in these tests
	cmd.Stdout, cmd.Stderr = e.output, e.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the end of Envoy's output:\n%s", e.output.tail(8<<10))
		}
	})
	return e
}

// freePorts returns distinct loopback addresses that nothing listens on.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lis.Close() }()
		addresses[i] = lis.Addr().String()
	}
	return addresses
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) tail(bytes int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b.Bytes()[max(0, l.b.Len()-bytes):])
}

// control serves s where the Envoy looks; the returned function is a kill.
func (e *realEnvoy) control(s *Server) (kill func()) {
	e.t.Helper()
	lis, err := net.Listen("tcp", e.xds)
	if err != nil {
		e.t.Fatal(err)
	}
	g := grpc.NewServer()
	s.Register(g)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(lis)
	}()
	kill = sync.OnceFunc(func() {
		s.Close()
		g.Stop()
		<-done
	})
	e.t.Cleanup(kill)
	return kill
}

// get reads a page; the connection is not kept, it would outlive the test.
func (e *realEnvoy) get(url string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// hosts lists the pool's hosts as "address health".
func (e *realEnvoy) hosts() []string {
	_, body, err := e.get("http://" + e.admin + "/clusters?format=json")
	if err != nil {
		return nil
	}
	var page struct {
		ClusterStatuses []struct {
			Name         string `json:"name"`
			HostStatuses []struct {
				Address struct {
					SocketAddress struct {
						Address string `json:"address"`
						Port    int    `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
				Health struct {
					EDS string `json:"eds_health_status"`
				} `json:"health_status"`
				Weight int `json:"weight"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		return nil
	}
	hosts := []string{}
	for _, c := range page.ClusterStatuses {
		if c.Name != envoy.PoolCluster {
			continue
		}
		for _, h := range c.HostStatuses {
			a := h.Address.SocketAddress
			hosts = append(hosts, fmt.Sprintf("%s:%d %s %d", a.Address, a.Port, h.Health.EDS, h.Weight))
		}
	}
	slices.Sort(hosts)
	return hosts
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func (e *realEnvoy) waitHosts(want ...string) {
	e.t.Helper()
	var got []string
	eventually(e.t, fmt.Sprintf("hosts %q", want), func() bool {
		got = e.hosts()
		return slices.Equal(got, want)
	})
}

func (e *realEnvoy) waitReady() {
	e.t.Helper()
	eventually(e.t, "/ready", func() bool {
		code, _, err := e.get("http://" + e.admin + "/ready")
		return err == nil && code == http.StatusOK
	})
}

// stat reads one counter or gauge.
func (e *realEnvoy) stat(name string) string {
	_, body, err := e.get("http://" + e.admin + "/stats?filter=^" + strings.ReplaceAll(name, ".", `\.`) + "$")
	if err != nil {
		return err.Error()
	}
	_, value, _ := strings.Cut(strings.TrimSpace(body), ": ")
	return value
}

// updates counts the endpoint messages that the pool has had.
func (e *realEnvoy) updates() int {
	e.t.Helper()
	value := e.stat("cluster." + envoy.PoolCluster + ".update_attempt")
	n, err := strconv.Atoi(value)
	if err != nil {
		e.t.Fatalf("update_attempt is %q: %v", value, err)
	}
	return n
}

// traffic sends requests without a pause until stop is called, which returns
// how many there were and those that were not answered with 200.
func (e *realEnvoy) traffic() (stop func() (sent int, failures []string)) {
	ctx, cancel := context.WithCancel(context.Background())
	type result struct {
		sent     int
		failures []string
	}
	done := make(chan result)
	go func() {
		var r result
		for ctx.Err() == nil {
			code, body, err := e.get("http://" + e.listener + "/v1/models")
			r.sent++
			if err != nil || code != http.StatusOK {
				r.failures = append(r.failures, fmt.Sprintf("%d %s %v", code, body, err))
			}
		}
		done <- r
	}()
	return func() (int, []string) {
		cancel()
		r := <-done
		return r.sent, r.failures
	}
}

// backend answers 200 with its own address.
func backend(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, lis.Addr().String())
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(lis)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return lis.Addr().String()
}
