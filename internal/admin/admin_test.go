package admin

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// serve returns a server with one metric, and where its readiness is set.
func serve(t *testing.T, status func() any) (url string, notReady *error) {
	t.Helper()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "Seen."})
	counter.Add(3)
	registry.MustRegister(counter)
	notReady = new(error)
	mux := http.NewServeMux()
	Register(mux, Options{Gatherer: registry, Ready: func() error { return *notReady }, Status: status})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, notReady
}

func get(t *testing.T, url string) (code int, contentType, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(text)
}

func TestRegister(t *testing.T) {
	url, notReady := serve(t, func() any { return map[string]int{"endpoints": 7} })
	*notReady = errors.New("no membership has been read yet")
	for _, test := range []struct {
		path string
		code int
		text string
	}{
		{"/healthz", http.StatusOK, "ok\n"},
		{"/readyz", http.StatusServiceUnavailable, "no membership has been read yet\n"},
		{"/metrics", http.StatusOK, "seen_total 3\n"},
		{"/status", http.StatusOK, "\"endpoints\": 7\n"},
		{"/", http.StatusNotFound, ""},
		{"/statuses", http.StatusNotFound, ""},
	} {
		if code, _, body := get(t, url+test.path); code != test.code || !strings.Contains(body, test.text) {
			t.Errorf("GET %s: %d %q, want %d with %q", test.path, code, body, test.code, test.text)
		}
	}
	*notReady = nil
	if code, _, body := get(t, url+"/readyz"); code != http.StatusOK || body != "ready\n" {
		t.Errorf("ready: %d %q", code, body)
	}
}

// Nothing can be changed here: only reading is served.
func TestRegisteredIsReadOnly(t *testing.T) {
	url, _ := serve(t, func() any { return nil })
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/status"} {
		for method, want := range map[string]int{
			http.MethodPost: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed, http.MethodHead: http.StatusOK,
		} {
			request, err := http.NewRequest(method, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s %s: %d, want %d", method, path, response.StatusCode, want)
			}
		}
	}
}

func TestStatusIsJSON(t *testing.T) {
	url, _ := serve(t, func() any { return map[string]string{"address": "<10.0.0.1:80>"} })
	code, contentType, body := get(t, url+"/status")
	var v map[string]string
	if err := json.Unmarshal([]byte(body), &v); err != nil || code != http.StatusOK || contentType != "application/json" {
		t.Errorf("%d %s: %v in %q", code, contentType, err, body)
	}
	if v["address"] != "<10.0.0.1:80>" {
		t.Errorf("read %v", v)
	}
}

// A status that cannot be written is an error that says so, not half a
// document with code 200.
func TestStatusThatIsNoJSON(t *testing.T) {
	url, _ := serve(t, func() any { return math.NaN() })
	if code, _, body := get(t, url+"/status"); code != http.StatusInternalServerError || !strings.Contains(body, "NaN") {
		t.Errorf("%d %q, want 500 with the reason", code, body)
	}
}

// What tells of the fleet is guarded; a probe may come by any name.
func TestGuard(t *testing.T) {
	mux := http.NewServeMux()
	Register(mux, Options{
		Gatherer: prometheus.NewRegistry(), Ready: func() error { return nil }, Status: func() any { return nil },
		Guard: func(http.Handler) http.Handler { return http.NotFoundHandler() },
	})
	for path, want := range map[string]int{"/metrics": 404, "/status": 404, "/healthz": 200, "/readyz": 200} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
