package replica

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// maxBody bounds a request body in bytes.
const maxBody = 64 << 20

// Replica is one model server. It is an [http.Handler], safe for concurrent use.
type Replica struct {
	params   Params
	worker   *worker
	metrics  *metrics
	faults   *switchboard
	counters counters
	mux      *http.ServeMux
	answers  atomic.Uint64
	loaded   atomic.Pointer[[]string] // LoRA adapters

	mu      sync.Mutex
	release chan struct{} // closed to let the held responses go on
}

// New returns a replica with an empty cache. Fields of p left zero get their
// defaults.
func New(p Params) (*Replica, error) {
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("replica %s: %w", p.Name, err)
	}
	w, err := newWorker(p)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", p.Name, err)
	}
	r := &Replica{params: p, worker: w, faults: newSwitchboard(), release: make(chan struct{}), mux: http.NewServeMux()}
	r.metrics = newMetrics(r.modelNames()[0], w.counters)
	r.routes()
	return r, nil
}

// Name returns the value of the x-replica header of every response.
func (r *Replica) Name() string { return r.params.Name }

// Stats returns the ground truth so far.
func (r *Replica) Stats() Stats { return r.counters.snapshot(r.params.Name) }

// Requests returns the last [RequestLog] requests, the oldest first.
func (r *Replica) Requests() []Record { return r.counters.records() }

// ResetStats clears the ground truth but for what is running now. The prefix
// cache is kept.
func (r *Replica) ResetStats() { r.counters.reset() }

// ClearCache empties the prefix cache.
func (r *Replica) ClearCache() { r.worker.clear() }

// Release lets every response that x-replica-hold keeps open now go on, and those to
// requests that have come and are not held yet.
func (r *Replica) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.release)
	r.release = make(chan struct{})
}

func (r *Replica) released() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.release
}

// ServeHTTP answers one request.
func (r *Replica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("x-replica", r.params.Name)
	r.mux.ServeHTTP(w, req)
}

func (r *Replica) routes() {
	fixed := func(f format) selectFormat { return func(http.Header, []byte) format { return f } }
	for path, f := range map[string]selectFormat{
		"/v1/chat/completions":          fixed(chatFormat{}),
		"/v1/completions":               fixed(completionFormat{}),
		"/v1/responses":                 fixed(responsesFormat{}),
		"/v1/messages":                  fixed(messagesFormat{}),
		"/v1/embeddings":                fixed(embeddingFormat{}),
		"/invocations":                  invocationFormat,
		"/endpoints/{name}/invocations": invocationFormat,

		"/endpoints/{name}/invocations-response-stream": invocationFormat,
	} {
		r.mux.HandleFunc("POST "+path, r.serve(f))
	}
	r.mux.HandleFunc("GET /health", r.serveHealth)
	r.mux.HandleFunc("GET /ping", r.serveHealth)
	r.mux.HandleFunc("GET /v1/models", r.listModels)
	r.mux.Handle("GET /metrics", r.metrics.handler())
	r.mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, r.Stats()) })
	r.mux.HandleFunc("GET /stats/requests", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, r.Requests())
	})
	r.mux.HandleFunc("POST /stats/reset", func(http.ResponseWriter, *http.Request) { r.ResetStats() })
	r.mux.HandleFunc("POST /control/release", func(http.ResponseWriter, *http.Request) { r.Release() })
	r.mux.HandleFunc("POST /control/clear-cache", func(http.ResponseWriter, *http.Request) { r.ClearCache() })
	r.mux.HandleFunc("GET /control/fault", r.serveFault)
	r.mux.HandleFunc("POST /control/fault", r.serveFault)
	r.mux.HandleFunc("/", r.serve(nil))
}

func (r *Replica) listModels(w http.ResponseWriter, _ *http.Request) {
	models := []object{}
	for _, name := range r.modelNames() {
		models = append(models, object{"id": name, "object": "model", "created": 0, "owned_by": "warmpath", "parent": nil})
	}
	for _, name := range r.adapters() {
		models = append(models, object{"id": name, "object": "model", "created": 0, "owned_by": "warmpath", "parent": r.modelNames()[0]})
	}
	writeJSON(w, http.StatusOK, object{"object": "list", "data": models})
}

// SetAdapters replaces the LoRA adapters, which the replica lists and serves as
// models beside its own.
func (r *Replica) SetAdapters(names ...string) { r.loaded.Store(&names) }

func (r *Replica) adapters() []string {
	if names := r.loaded.Load(); names != nil {
		return *names
	}
	return nil
}

func (r *Replica) modelNames() []string {
	if len(r.params.Models) == 0 {
		return []string{"any"}
	}
	return r.params.Models
}

func (r *Replica) servesModel(name string) bool {
	return len(r.params.Models) == 0 || name == "" || slices.Contains(r.params.Models, name) || slices.Contains(r.adapters(), name)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("replica: answer of type %T cannot be JSON: %v", v, err))
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is seen by its context
}
