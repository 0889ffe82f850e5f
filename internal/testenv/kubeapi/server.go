// Package kubeapi is a stand-in for a Kubernetes API server that knows the
// EndpointSlices of one Service, for tests that have to work without a cluster. It
// lists in pages, watches, sends bookmarks, forgets old versions, and misbehaves
// on command, in the wire format of kube-apiserver 1.37.
package kubeapi

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running stand-in. Its methods may be called at any time.
type Server struct {
	// URL is where it is, and CAFile vouches for it.
	URL, CAFile string
	// Namespace and Service are what it knows.
	Namespace, Service string

	http *httptest.Server

	mu      sync.Mutex
	version int
	slices  map[string]object
	// events are the changes after version forgotten.
	events    []change
	forgotten int
	changed   chan struct{} // closed at each change of anything

	token   string
	status  int  // 0, or what every request is refused with
	silent  bool // requests are not answered, and watches say nothing
	watches int
	counts  map[string]int
}

type object map[string]any

type change struct {
	version int
	kind    string
	object  object
}

// Start starts a server that stops when the test ends. It takes the token only.
func Start(t *testing.T, token string) *Server {
	s := &Server{
		Namespace: "llm", Service: "llama", token: token,
		slices: make(map[string]object), changed: make(chan struct{}), counts: make(map[string]int), version: 100, forgotten: 100,
	}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	s.URL = s.http.URL
	s.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	if err := os.WriteFile(s.CAFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *Server) stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Cut closes every connection in the middle of whatever it carries.
func (s *Server) Cut() { s.http.CloseClientConnections() }

// change does something under the lock, and wakes every watch.
func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Put creates or replaces a slice.
func (s *Server) Put(name string, endpoints ...Endpoint) {
	s.change(func() {
		s.version++
		kind := "ADDED"
		if _, there := s.slices[name]; there {
			kind = "MODIFIED"
		}
		o := s.object(name, endpoints)
		s.slices[name] = o
		s.events = append(s.events, change{s.version, kind, o})
	})
}

// Delete removes a slice.
func (s *Server) Delete(name string) {
	s.change(func() {
		s.version++
		o := s.object(name, nil)
		delete(s.slices, name)
		s.events = append(s.events, change{s.version, "DELETED", o})
	})
}

// Bookmark tells every watch how far the server is: further than its Service.
func (s *Server) Bookmark() {
	s.change(func() {
		s.version += 1000
		o := object{"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": object{"resourceVersion": strconv.Itoa(s.version)}}
		s.events = append(s.events, change{s.version, "BOOKMARK", o})
	})
}

// Forget drops all that has been: watches from before now are answered with 410.
func (s *Server) Forget() {
	s.change(func() {
		s.version++
		s.forgotten, s.events = s.version, nil
	})
}

// Compact drops all that has been but for the last change: a watch that goes on
// from there, or from the last bookmark, is as good as before.
func (s *Server) Compact() { s.change(func() { s.forgotten, s.events = s.version, nil }) }

// Refuse answers everything with a status; 0 ends that.
func (s *Server) Refuse(status int) { s.change(func() { s.status = status }) }

// Silence keeps everything open and answers nothing, or ends that.
func (s *Server) Silence(silent bool) { s.change(func() { s.silent = silent }) }

// SetToken replaces the one token that is taken.
func (s *Server) SetToken(token string) { s.change(func() { s.token = token }) }

// Count returns how many requests of a kind there were: "list", "watch", "refused".
func (s *Server) Count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}

// Watches returns how many watches are open now.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	token, status, silent := s.token, s.status, s.silent
	s.mu.Unlock()
	want := fmt.Sprintf("/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices", s.Namespace)
	query := r.URL.Query()
	switch {
	case silent:
		<-r.Context().Done()
	case status != 0:
		s.refuse(w, status, "told to refuse")
	case r.Header.Get("Authorization") != "Bearer "+token:
		s.refuse(w, http.StatusUnauthorized, "Unauthorized")
	case r.Method != http.MethodGet || r.URL.Path != want || query.Get("labelSelector") != "kubernetes.io/service-name="+s.Service:
		s.refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	case query.Get("watch") != "":
		s.watch(w, r)
	default:
		s.list(w, query.Get("limit"), query.Get("continue"))
	}
}

func (s *Server) refuse(w http.ResponseWriter, code int, message string) {
	s.mu.Lock()
	s.counts["refused"]++
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(statusOf(code, message))
}

func statusOf(code int, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": message, "code": code}
}

// list answers with a page. A continue token is the version of the list and how
// many slices came before; once the version is forgotten it is worth nothing.
func (s *Server) list(w http.ResponseWriter, limit, next string) {
	s.mu.Lock()
	s.counts["list"]++
	version, skip := s.version, 0
	if next != "" {
		_, _ = fmt.Sscanf(next, "%d-%d", &version, &skip)
	}
	expired := version < s.forgotten
	names := slices.Sorted(maps.Keys(s.slices))
	items := []object{}
	metadata := object{"resourceVersion": strconv.Itoa(version)}
	most, _ := strconv.Atoi(limit)
	for i, name := range names {
		switch {
		case i < skip:
		case most > 0 && len(items) == most:
			if metadata["continue"] == nil {
				metadata["continue"] = fmt.Sprintf("%d-%d", version, i)
			}
		default:
			items = append(items, s.slices[name])
		}
	}
	s.mu.Unlock()
	if expired {
		s.refuse(w, http.StatusGone, "The provided continue parameter is too old")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata, "items": items})
}

// watch streams the changes after a version until timeoutSeconds are over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	s.count(1)
	defer s.count(-1)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(w)
	for {
		s.mu.Lock()
		news, changed, expired, silent := s.after(from), s.changed, from < s.forgotten, s.silent
		s.mu.Unlock()
		switch {
		case silent:
		case expired:
			_ = encoder.Encode(object{"type": "ERROR", "object": statusOf(http.StatusGone, "too old resource version: "+strconv.Itoa(from))})
			return
		default:
			for _, c := range news {
				_ = encoder.Encode(object{"type": c.kind, "object": c.object})
				from = c.version
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches += n
	if n > 0 {
		s.counts["watch"]++
	}
}

func (s *Server) after(version int) (news []change) {
	for _, c := range s.events {
		if c.version > version {
			news = append(news, c)
		}
	}
	return news
}

// Endpoint is an entry of a slice.
type Endpoint struct {
	Address string // ip:port; all of a slice have one port
	// NotReady and Terminating are its conditions.
	NotReady, Terminating bool
	Zone                  string
}

// object is a slice as the API has it.
func (s *Server) object(name string, endpoints []Endpoint) object {
	list, port := []object{}, 0
	for _, e := range endpoints {
		i := strings.LastIndexByte(e.Address, ':')
		port, _ = strconv.Atoi(e.Address[i+1:])
		ready := !e.NotReady && !e.Terminating
		entry := object{
			"addresses":  []string{e.Address[:i]},
			"conditions": object{"ready": ready, "serving": !e.NotReady, "terminating": e.Terminating},
			"targetRef":  object{"kind": "Pod", "namespace": s.Namespace, "name": "pod-" + e.Address[:i], "uid": e.Address},
		}
		if e.Zone != "" {
			entry["zone"] = e.Zone
		}
		list = append(list, entry)
	}
	return object{
		"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
		"metadata": object{
			"name": name, "namespace": s.Namespace, "resourceVersion": strconv.Itoa(s.version),
			"labels": object{"kubernetes.io/service-name": s.Service, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
		},
		"endpoints": list,
		"ports":     []object{{"name": "http", "port": port, "protocol": "TCP"}},
	}
}
