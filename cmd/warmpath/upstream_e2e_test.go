package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// upstream is a model server of this test's own. It is in no pool until
// [instead] puts it there.
func upstream(t *testing.T, address string, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

// instead makes the addresses the whole membership.
func instead(t *testing.T, s *stack.Stack, addresses ...string) {
	t.Helper()
	if err := s.WriteEndpoints(stack.Endpoints(addresses...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the membership", func() error {
		clusters, err := s.EnvoyAdmin(t.Context(), "/clusters")
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if host := "warmpath_pool::" + a + "::health_flags"; !strings.Contains(string(clusters), host) {
				return fmt.Errorf("Envoy does not know %s", a)
			}
		}
		return s.EnvoyKnows(t.Context(), len(addresses))
	}); err != nil {
		t.Fatal(err)
	}
}

// unjudged is PREFIX_AWARE over endpoints that nobody probes, which leave at once.
func unjudged() stack.Config {
	config := prefixAware(0)
	config.Extra, config.DrainTimeout = noHealth, 1
	return config
}

// answers are what model servers send, byte by byte.
var answers = map[string]http.HandlerFunc{
	"/events": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		w.Header().Set("cache-control", "no-cache")
		w.Header().Set("x-accel-buffering", "no")
		for i := range 500 {
			_, _ = io.WriteString(w, "event: delta\nid: "+strings.Repeat("7", 1+i%9)+"\ndata: {\"text\":\"caf\u00e9 \\u0000\"}\n\n")
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	},
	"/whole": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2"}
		w.Header().Set("content-type", "application/json")
		w.Header().Set("server", "uvicorn")
		_, _ = w.Write(bytes.Repeat([]byte(`{"object":"x"} `), 200))
	},
	"/compressed": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-encoding", "gzip")
		_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	},
	"/nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"/failure": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "CUDA error", http.StatusInternalServerError)
	},
	"/too-many": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("retry-after", "7"); w.WriteHeader(429) },
}

// Answers pass through as the model server sent them: the same bytes, status and
// headers. Of warmpath or of its choice they tell the client
// nothing. That holds for those that are inspected too.
func TestAnswersAreUntouched(t *testing.T) {
	for _, share := range []float64{0.000001, 1} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			answersAreUntouched(t, share)
		})
	}
}

func answersAreUntouched(t *testing.T, share float64) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: unjudged(), Inspect: share})
	serve := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answers[r.URL.Path](w, r)
	}
	servers := []string{upstream(t, "127.0.0.1:0", serve), upstream(t, "127.0.0.1:0", serve)}
	instead(t, s, servers...)
	exchange := func(client *http.Client, base, path string) (*http.Response, []byte) {
		t.Helper()
		body := bytes.NewReader(chat(strings.Repeat("Answer me. ", 100), "q", true))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("content-type", "application/json")
		request.Header.Set("accept-encoding", "gzip") // or the client would unpack it
		r, text, err := exchangeWith(client, request)
		if err != nil {
			t.Fatal(err)
		}
		return r, text
	}
	for path := range answers {
		want, text := exchange(clientOf(t, 1), "http://"+servers[0], path)
		for _, major := range []int{1, 2} {
			got, through := exchange(clientOf(t, major), s.URL, path)
			if got.StatusCode != want.StatusCode || !bytes.Equal(through, text) {
				t.Errorf("%s over HTTP/%d: status %d and %d bytes, the server sent %d and %d", path, major, got.StatusCode, len(through), want.StatusCode, len(text))
			}
			for name, values := range got.Header {
				if name != "Date" && name != "X-Envoy-Upstream-Service-Time" && !slices.Equal(want.Header[name], values) {
					t.Errorf("%s over HTTP/%d: %s %q, the server sent %q", path, major, name, values, want.Header[name])
				}
			}
			for name, values := range want.Header {
				if _, ok := got.Header[name]; !ok {
					t.Errorf("%s over HTTP/%d: %s %q is gone", path, major, name, values)
				}
			}
		}
	}
	noMisses(t, s)
	atRest(t, s)
}
