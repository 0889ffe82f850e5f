//go:build kubernetes

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/discovery/kubernetes"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

// TestKubernetesWatch follows a Service through a proxy that writes down what a real
// API server says: a list in pages, a watch that goes on from a bookmark, and the 410
// of a server that has forgotten the version, as one of several that has just started.
func TestKubernetesWatch(t *testing.T) {
	const slices, paged = 45, 20
	k := startKapi(t)
	k.apply("../../examples/kubernetes/rbac.yaml", "")
	k.service(8000, false)
	for i := range slices {
		k.must(http.MethodPost, slicesPath, oneEndpoint("llama", i))
	}
	b := startGateway(t, k)
	updates := followThrough(t, k, b)
	want := func(n int) {
		t.Helper()
		u := nextUpdate(t, updates)
		if u.Err != nil || len(u.Problems) > 0 || u.Set.Len() != n || u.Set.At(0).Zone != "eu-1a" {
			t.Fatalf("update with %d endpoints, error %v, problems %v; want %d in eu-1a", u.Set.Len(), u.Err, u.Problems, n)
		}
	}
	want(slices)
	if lists := b.asked("limit=20"); len(lists) != (slices+paged-1)/paged {
		t.Errorf("lists %q, want pages of %d", lists, paged)
	}

	// What happens elsewhere moves the version on, and is told in a bookmark only, if it
	// happens during a watch.
	elsewhere := 0
	b.await("a watch from a bookmark", func() bool {
		if b.open > elsewhere {
			elsewhere = b.open
			k.must(http.MethodPost, slicesPath, oneEndpoint("other", elsewhere))
		}
		return b.bookmark != "" && strings.Contains(b.last, "resourceVersion="+b.bookmark+"&")
	})
	k.must(http.MethodDelete, slicesPath+"/llama-7", nil)
	want(slices - 1)

	// The watch says nothing while the server goes away and comes back, and ends then.
	release := b.hold()
	k.must(http.MethodDelete, slicesPath+"/llama-8", nil)
	k.must(http.MethodPost, slicesPath, oneEndpoint("llama", 7))
	k.must(http.MethodDelete, slicesPath+"/llama-9", nil)
	k.kill()
	k.start()
	b.reach(k)
	release()
	want(slices - 2)
	b.await("one 410", func() bool { return b.expired == 1 })
}

func oneEndpoint(service string, i int) object {
	return object{
		"metadata":    object{"name": fmt.Sprintf("%s-%d", service, i), "labels": object{"kubernetes.io/service-name": service}},
		"addressType": "IPv4", "ports": []object{{"name": "http", "port": 8000, "protocol": "TCP"}},
		"endpoints": []object{{"addresses": []string{fmt.Sprintf("10.77.2.%d", i+1)}, "zone": "eu-1a"}},
	}
}

// followThrough follows the Service llama until the test ends.
func followThrough(t *testing.T, k *kapi, b *gateway) <-chan discovery.Update {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, k.token())
	source, err := kubernetes.New(kubernetes.Options{
		Server: b.http.URL, CAFile: b.ca, TokenFile: token, Namespace: namespace, Service: "llama",
		Slices: endpointslice.Options{Port: endpointslice.PortRef{Name: "http"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	updates, ended := make(chan discovery.Update, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- source.Run(ctx, func(u discovery.Update) { updates <- u }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return updates
}

func nextUpdate(t *testing.T, updates <-chan discovery.Update) discovery.Update {
	t.Helper()
	select {
	case u := <-updates:
		return u
	case <-time.After(time.Minute):
		t.Fatal("no update")
		return discovery.Update{}
	}
}

// gateway is a proxy before the API server. A watch lasts six seconds: a
// test need not wait for longer, and it is no watch that the server ends at once.
type gateway struct {
	t    *testing.T
	http *httptest.Server
	ca   string

	mu       sync.Mutex
	proxy    *httputil.ReverseProxy
	queries  []string
	last     string        // query of the last watch
	open     int           // watches that the server has begun to answer
	bookmark string        // version of the last one
	expired  int           // events of the code 410
	held     chan struct{} // nil, or closed when watches may end
}

func startGateway(t *testing.T, k *kapi) *gateway {
	b := &gateway{t: t, ca: filepath.Join(t.TempDir(), "ca.crt")}
	b.http = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.http.EnableHTTP2 = true
	b.http.StartTLS()
	t.Cleanup(b.http.Close)
	write(t, b.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.http.Certificate().Raw})))
	b.reach(k)
	return b
}

// reach sends requests to the server as it is now.
func (b *gateway) reach(k *kapi) {
	server, err := url.Parse(k.url())
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			if query := r.Out.URL.Query(); query.Has("watch") {
				query.Set("timeoutSeconds", "6")
				r.Out.URL.RawQuery = query.Encode()
			}
		},
		Transport: k.client.Transport, FlushInterval: -1, ModifyResponse: b.listen,
	}
}

func (b *gateway) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	proxy := b.proxy
	b.queries = append(b.queries, r.URL.RawQuery)
	if r.URL.Query().Has("watch") {
		b.last = r.URL.RawQuery
	}
	b.mu.Unlock()
	proxy.ServeHTTP(w, r)
}

// listen puts itself between a watch and who reads it.
func (b *gateway) listen(r *http.Response) error {
	if r.Request.URL.Query().Has("watch") {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open++
		r.Body = &heard{Closer: r.Body, lines: bufio.NewReader(r.Body), b: b}
	}
	return nil
}

// heard is the body of a watch, line by line.
type heard struct {
	io.Closer
	lines *bufio.Reader
	rest  bytes.Buffer
	b     *gateway
}

func (h *heard) Read(p []byte) (int, error) {
	if h.rest.Len() == 0 {
		line, err := h.lines.ReadBytes('\n')
		if held := h.b.hears(line); held != nil {
			<-held
			return 0, io.EOF
		}
		if h.rest.Write(line); len(line) == 0 {
			return 0, err
		}
	}
	return h.rest.Read(p)
}

// hears writes a line down, or returns until when its watch is held.
func (b *gateway) hears(line []byte) (held chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var event struct {
		Type   string
		Object struct {
			Code     int
			Metadata struct{ ResourceVersion string }
		}
	}
	switch err := json.Unmarshal(line, &event); {
	case b.held != nil:
		return b.held
	case err != nil:
	case event.Type == "BOOKMARK":
		b.bookmark = event.Object.Metadata.ResourceVersion
	case event.Object.Code == http.StatusGone:
		b.expired++
	}
	return nil
}

// hold keeps what watches say, and their end, until release ends them.
func (b *gateway) hold() (release func()) {
	held := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held = nil
		close(held)
	}
}

// asked returns the queries that contain something.
func (b *gateway) asked(part string) (queries []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, query := range b.queries {
		if strings.Contains(query, part) {
			queries = append(queries, query)
		}
	}
	return queries
}

// await polls, with the lock, for what has been written down.
func (b *gateway) await(what string, done func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		b.mu.Lock()
		is, queries := done(), b.queries
		b.mu.Unlock()
		if is {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			b.t.Fatalf("never: %s; it was asked %q", what, queries[max(0, len(queries)-10):])
		}
	}
}
