// Package admin serves HTTP to operators and probes: /metrics, /healthz, /readyz
// and /status. It should listen on loopback or a private network. The live page is beside
// it, of package live/web, and memberships that are given over HTTP, of discovery.
package admin

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options are what is served.
type Options struct {
	// Gatherer has the metrics.
	Gatherer prometheus.Gatherer
	// Ready tells why the program does not serve requests yet, nil when it does.
	Ready func() error
	// Status is the value of /status and must marshal to JSON.
	Status func() any
	// Guard is put around what tells of the fleet, /metrics and /status; nil for nothing.
	// Probes need no more than that somebody answers.
	Guard func(http.Handler) http.Handler
}

// Register serves the endpoints for operators.
func Register(mux *http.ServeMux, o Options) {
	guard := o.Guard
	if guard == nil {
		guard = func(h http.Handler) http.Handler { return h }
	}
	mux.Handle("GET /metrics", guard(promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /status", guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.MarshalIndent(o.Status(), "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n'))
	})))
}
