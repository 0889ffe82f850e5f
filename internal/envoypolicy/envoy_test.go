package envoypolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/testenv"
)

// arrival is what one message of an ext_proc stream carried.
type arrival struct {
	metadata metadata.MD
	message  *extprocv3.ProcessingRequest
}

// recorder is an ext_proc server that changes nothing and keeps what arrives.
type recorder struct {
	extprocv3.UnimplementedExternalProcessorServer
	arrivals chan arrival
}

func (r *recorder) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil // the request has ended
		}
		var answer extprocv3.ProcessingResponse
		switch m.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_RequestHeaders:
			answer.Response = &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}
		case *extprocv3.ProcessingRequest_RequestBody:
			answer.Response = &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{}}
		default:
			return nil
		}
		r.arrivals <- arrival{md, m}
		if err := stream.Send(&answer); err != nil {
			return nil
		}
	}
}

// startRecorder returns the server and its address.
func startRecorder(t *testing.T) (*recorder, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{arrivals: make(chan arrival, 16)}
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, r)
	healthv1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r, listener.Addr().String()
}

// startEnvoy runs Envoy until the test ends and returns its listener's URL.
func startEnvoy(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	file, adminFile := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(t.Context(), testenv.Envoy(t), "-c", file, "--admin-address-path", adminFile,
		"--disable-hot-restart", "--concurrency", "1", "-l", "warning")
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // ended by the test's context
		if t.Failed() {
			t.Logf("Envoy printed:\n%s", output.String())
		}
	})
	var url string
	poll(t, "Envoy's listener", func() (err error) {
		url, err = listenerURL(adminFile)
		return err
	})
	return url
}

// listenerURL asks Envoy's admin interface where it listens.
func listenerURL(adminFile string) (string, error) {
	admin, err := os.ReadFile(adminFile)
	if err != nil {
		return "", err
	}
	if _, err := get(fmt.Sprintf("http://%s/ready", admin)); err != nil {
		return "", err
	}
	listeners, err := get(fmt.Sprintf("http://%s/listeners?format=json", admin))
	if err != nil {
		return "", err
	}
	var status struct {
		ListenerStatuses []struct {
			LocalAddress struct {
				SocketAddress struct {
					Address   string
					PortValue int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(listeners, &status); err != nil {
		return "", err
	}
	if len(status.ListenerStatuses) != 1 {
		return "", fmt.Errorf("listeners: %s", listeners)
	}
	a := status.ListenerStatuses[0].LocalAddress.SocketAddress
	return fmt.Sprintf("http://%s:%d", a.Address, a.PortValue), nil
}

func get(url string) ([]byte, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, err
}

// poll calls ready until it returns nil.
func poll(t *testing.T, what string, ready func() error) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// liveConfig is the shipped bootstrap with the routes and clusters of
// testdata/live in it, and without a control plane.
func liveConfig(t *testing.T, extProc, upstream string) string {
	t.Helper()
	shipped, err := envoy.Bootstrap(envoy.Addresses{ExtProc: extProc})
	if err != nil {
		t.Fatal(err)
	}
	config := string(shipped)
	dynamic, rest, ok := strings.Cut(config, "dynamic_resources:")
	_, static, ok2 := strings.Cut(rest, "static_resources:")
	if !ok || !ok2 {
		t.Fatal("the shipped bootstrap has no dynamic or no static resources")
	}
	config = dynamic + "static_resources:" + static
	_, port, err := net.SplitHostPort(upstream)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{
		{"port_value: 9901", "port_value: 0"},
		{"port_value: 10000", "port_value: 0"},
		{"              routes:\n", "              routes:\n" + indent(14, read(t, "routes.yaml"))},
		{"receiving_namespaces:", "cluster_metadata_forwarding_namespaces: {untyped: [warmpath]}\n                receiving_namespaces:"},
		{"  clusters:\n", "  clusters:\n" + indent(2, strings.ReplaceAll(read(t, "clusters.yaml"), "UPSTREAM_PORT", port))},
	} {
		if n := strings.Count(config, r[0]); n != 1 {
			t.Fatalf("the configuration contains %q %d times, want once", r[0], n)
		}
		config = strings.Replace(config, r[0], r[1], 1)
	}
	return config
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "live", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func indent(n int, text string) string {
	space := strings.Repeat(" ", n)
	return space + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+space) + "\n"
}
