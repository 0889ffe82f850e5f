package prober

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/health"
)

func serve(t *testing.T, handler http.HandlerFunc) (address string) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// Probes over real connections.
func TestProbeOverHTTP(t *testing.T) {
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.RequestURI() != "/health?deep=1" || r.UserAgent() != "warmpath-health" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	endless := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	for _, tc := range []struct{ name, address, want string }{
		{"good", good, ""},
		{"an endless answer", endless, ""},
		{"refused", refused(t), "connection refused"},
		{"status", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), "status 503, want 200 to 299"},
		{"redirect", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+good+"/health?deep=1", http.StatusFound)
		}), "status 302"},
		{"silence", serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "no answer in"},
		{"not HTTP", raw(t, strings.Repeat("x", 5000)+"\r\n\r\n"), "malformed"},
		{"hangs up", raw(t, ""), "EOF"},
	} {
		o := Defaults()
		o.Path, o.Timeout = "/health?deep=1", 10*time.Second
		if tc.name == "silence" {
			o.Timeout = 50 * time.Millisecond
		}
		p, err := New(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), o.Timeout)
		got := p.probe(ctx, tc.address)
		if late := ctx.Err() != nil; late != (tc.name == "silence") {
			t.Errorf("%s: took the whole timeout: %v", tc.name, late)
		}
		cancel()
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || len(got) > maxFailure {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// refused returns an address at which nobody listens.
func refused(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// raw answers every connection with a text and closes it.
func raw(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// Each probe has its own connection.
func TestConnectionsAreNotReused(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p, err := New(Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if failure := p.probe(t.Context(), server.Listener.Addr().String()); failure != "" {
			t.Fatal(failure)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections for 3 probes", n)
	}
}

// Everything at once, with real servers: memberships, failed requests, flapping
// endpoints and readers. In the end the view is the truth.
func TestRealServersUnderLoad(t *testing.T) {
	const n = 8
	var status [n]atomic.Int64
	var endpoints []fleet.Endpoint
	for i := range n {
		status[i].Store(200)
		a := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status[i].Load())) })
		endpoints = append(endpoints, fleet.Endpoint{Address: a, Weight: 1})
	}
	all, _ := fleet.NewSet(endpoints)
	half, _ := fleet.NewSet(endpoints[:n/2])
	o := Defaults()
	o.Interval = 10 * time.Millisecond
	o.Health.MinBackoff, o.Health.MaxBackoff = time.Millisecond, 10*time.Millisecond
	o.Timeout = 5 * time.Second
	reports := make(chan health.View, 1)
	p, err := New(o, func(set fleet.Set, v health.View) {
		if set.Len() != len(v.Endpoints) {
			t.Errorf("%d members, %d judged", set.Len(), len(v.Endpoints))
		}
		select { // the newest replaces one that nobody has read
		case <-reports:
		default:
		}
		reports <- v
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				e := endpoints[(i+w)%n].Address
				p.Report(e, health.Signal(i%4))
				status[(i+w)%n].Store([]int64{200, 503}[i/100%2])
				p.View()
				if i%500 == 0 {
					p.SetMembers([]fleet.Set{all, half}[i/500%2])
				}
			}
			status[n-1].Store(500) // the last word
			for i := range n - 1 {
				status[i].Store(200)
			}
			p.SetMembers(all)
		})
	}
	awaitTruth(t, ctx, reports, all, endpoints[n-1].Address)
}

// awaitTruth waits for a view in which every endpoint is healthy but one. (One
// that never answered well as a late member is still starting.)
func awaitTruth(t *testing.T, ctx context.Context, reports <-chan health.View, set fleet.Set, bad string) {
	var last string
	for {
		select {
		case v := <-reports:
			e, _ := v.Find(bad)
			if len(v.Endpoints) == set.Len() && v.Count(health.Healthy) == set.Len()-1 && e.State != health.Healthy {
				return
			}
			last = fmt.Sprintf("%+v", v)
		case <-ctx.Done():
			t.Fatalf("never: %s", last)
		}
	}
}
