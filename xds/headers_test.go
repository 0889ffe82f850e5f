package xds

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// controls are the headers with which a client could command Envoy's router.
func controls() map[string]string {
	return map[string]string{
		"x-envoy-retry-on":                         "5xx,retriable-status-codes,retriable-headers",
		"x-envoy-retry-grpc-on":                    "unavailable",
		"x-envoy-max-retries":                      "2",
		"x-envoy-retriable-status-codes":           "503",
		"x-envoy-retriable-header-names":           "server",
		"x-envoy-hedge-on-per-try-timeout":         "true",
		"x-envoy-upstream-rq-timeout-ms":           "1",
		"x-envoy-upstream-rq-per-try-timeout-ms":   "1",
		"x-envoy-upstream-rq-timeout-alt-response": "1",
		"x-envoy-upstream-stream-duration-ms":      "1",
	}
}

// failing is a server that answers 503 after 50 ms, counts its requests and
// keeps the headers of the last one.
type failing struct {
	address  string
	requests atomic.Int64
	header   atomic.Pointer[http.Header]
}

func startFailing(t *testing.T) *failing {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{address: lis.Addr().String()}
	s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		h := r.Header.Clone()
		f.header.Store(&h)
		delay := time.NewTimer(50 * time.Millisecond)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "from the server")
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
	return f
}

func (e *realEnvoy) post(header map[string]string) (code int, body string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, "http://"+e.listener+"/v1/completions", http.NoBody)
	if err != nil {
		e.t.Fatal(err)
	}
	// See insiders: a request for which Envoy itself drops nothing.
	r.Header.Set("x-forwarded-for", "10.0.0.1")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// insiders makes Envoy take private addresses for internal ones, as older
// versions did by default and many configurations still say. From outsiders Envoy
// drops most control headers itself, so that only insiders put the shipped
// removal to the test.
func insiders() []string {
	const line = "codec_type: AUTO "
	return []string{line, "internal_address_config: {cidr_ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}\n          " + line}
}

// TestClientCannotCommandTheRouter sends each control header while warmpath is
// down, when nothing but the shipped configuration stands between.
func TestClientCannotCommandTheRouter(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t, insiders()...)
	s := newServer(t, Observer{})
	e.control(s)
	server := startFailing(t)
	publishSet(t, s, host(server.address))
	e.waitReady()
	e.waitHosts(server.address + " HEALTHY 1")

	all := controls()
	tries := []map[string]string{all}
	for k, v := range all {
		tries = append(tries, map[string]string{k: v})
	}
	for _, try := range tries {
		before := server.requests.Load()
		code, body := e.post(try)
		if code != http.StatusServiceUnavailable || body != "from the server" {
			t.Errorf("%v: %d %q, want the server's own 503", try, code, body)
		}
		if n := server.requests.Load() - before; n != 1 {
			t.Errorf("%v: the server had %d requests, want 1", try, n)
		}
		for k := range try {
			if v := server.header.Load().Get(k); v != "" {
				t.Errorf("the server saw %s: %s", k, v)
			}
		}
	}
}

// TestClientCannotChooseItsServer names a server in the header that warmpath
// sets, while warmpath is down.
func TestClientCannotChooseItsServer(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t, insiders()...)
	s := newServer(t, Observer{})
	e.control(s)
	servers := []*failing{startFailing(t), startFailing(t)}
	publishSet(t, s, host(servers[0].address), fleet.Endpoint{Address: servers[1].address, Weight: 1, State: fleet.Draining})
	e.waitReady()
	eventually(t, "two hosts", func() bool { return len(e.hosts()) == 2 })
	for i := range 5 {
		e.post(map[string]string{
			"x-gateway-destination-endpoint":   servers[1].address,
			"x-amzn-sagemaker-prefix-aware-id": fmt.Sprintf("tenant-%d", i),
		})
	}
	if n := servers[1].requests.Load(); n != 0 {
		t.Errorf("the named server had %d of 5 requests, want 0", n)
	}
	if v := servers[0].header.Load().Get("x-gateway-destination-endpoint"); v != "" {
		t.Errorf("the server saw the client's x-gateway-destination-endpoint: %s", v)
	}
}
