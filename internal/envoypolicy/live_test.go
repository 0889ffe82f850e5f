package envoypolicy

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/warmpath/warmpath/internal/route"
)

var rewrite = flag.Bool("rewrite", false, "record what the real Envoy sends as testdata/samples")

// routes are those of testdata/live/routes.yaml, and the policies that should
// come of them: see describe. A sample of each is in testdata/samples.
var routes = map[string]string{
	"plain":             "default LEAST_OUTSTANDING_REQUESTS -1 0",
	"initial-name":      "initial_metadata PREFIX_AWARE 16384 7",
	"initial-json":      "initial_metadata PREFIX_AWARE 4096 10",
	"initial-formatted": "initial_metadata PREFIX_AWARE 16384 7",
	"cluster":           "cluster_metadata PREFIX_AWARE 2048 0",
	"route":             "route_metadata PREFIX_AWARE 4096 10",
	"route-types":       "route_metadata PREFIX_AWARE 8192 0",
	"all":               "initial_metadata PREFIX_AWARE 16384 7",
}

func testResolver(t testing.TB) *Resolver {
	t.Helper()
	r, err := NewResolver(map[string]route.Policy{
		"long":   {Strategy: route.PrefixAware, PrefixLength: 16384, ConcurrencyThreshold: 7},
		"random": {},
	}, map[string]route.Policy{
		"llama": {Strategy: route.KVAware, ConcurrencyThreshold: 3},
	}, route.Policy{Strategy: route.LeastOutstandingRequests})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func describe(r Resolution) string {
	s := fmt.Sprintf("%s %s %d %d", r.Origin, r.Policy.Strategy, r.Policy.PrefixLength, r.Policy.ConcurrencyThreshold)
	if r.Pool != "" {
		s += " of " + r.Pool
	}
	for _, f := range r.Faults {
		s += "; " + f.Error()
	}
	return s
}

// TestRealEnvoy sends a request through each route, without and with its body in
// ext_proc, and resolves what the streams carry. As Envoy 1.40 does it:
//
//   - attributes come under the key "envoy.filters.http.ext_proc" whatever the
//     filter's name is, as text, "" for no metadata, and with the first message only;
//   - the cluster's metadata comes typed with every message;
//   - gRPC initial metadata is formatted, so "%REQ(x-policy)%" is what the client
//     sent; a client's own header of our key does not come;
//   - the YAML of metadata makes a number of 4096, but a string of 0.1 or 1.0e+20.
func TestRealEnvoy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	recorder, address := startRecorder(t)
	url := startEnvoy(t, liveConfig(t, address, upstream.Listener.Addr().String()))
	r := testResolver(t)
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		for mode, messages := range map[string]int{"none": 1, "buffered": 2} {
			post(t, url+"/"+mode+"/"+name)
			first := <-recorder.arrivals
			in := NewInput(metadata.NewIncomingContext(t.Context(), first.metadata), first.message)
			if got := describe(r.Resolve(in)); got != routes[name] {
				t.Errorf("%s/%s: %s, want %s\nof %+v", mode, name, got, routes[name], in)
			}
			for range messages - 1 {
				if later := <-recorder.arrivals; len(later.message.GetAttributes()) > 0 {
					t.Errorf("%s/%s: attributes came again, with %T", mode, name, later.message.GetRequest())
				}
			}
			if *rewrite && mode == "none" {
				writeSample(t, name, first)
			}
		}
	}
}

// post sends a request whose headers are as misleading as a client can make them.
func post(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(Key, "random")
	request.Header.Set("x-policy", "long") // the one that a route takes its policy from
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s, %v", url, response.Status, err)
	}
}
