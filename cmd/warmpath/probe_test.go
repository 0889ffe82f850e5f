package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/internal/live/view"
)

// nothingDecided is a warmpath's admin listener before any request.
func nothingDecided(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(view.Snapshot{})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A probe has the fields of its path only, because engines may refuse others, and the host
// that -H names.
func TestDoctorProbe(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/chat/completions":   "max_tokens messages model stream",
		"/v1/completions":        "max_tokens model prompt stream",
		"/a/v1/completions?b=/c": "max_tokens model prompt stream",
	} {
		var host, fields string
		gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&body) == nil {
				host, fields = r.Host, strings.Join(slices.Sorted(maps.Keys(body)), " ")
			}
		}))
		defer gateway.Close()
		_, errs, _ := warmpath(t.Context(), "doctor", "--live", gateway.URL, "--from", nothingDecided(t), "--path", path, "-H", "Host: llm.example.com")
		if host != "llm.example.com" || fields != want {
			t.Errorf("%s: host %q, fields %q, want %q: %s", path, host, fields, want, errs)
		}
	}
	_, errs, exit := warmpath(t.Context(), "doctor", "--live", "http://127.0.0.1:1", "--path", "v1/completions")
	if exit != exitUsage || !strings.Contains(errs, "begins with /") {
		t.Errorf("a path without a slash: exit %d: %s", exit, errs)
	}
}

// The host that -H names is the one in the certificate too.
func TestDoctorProbesTheNamedHost(t *testing.T) {
	name := ""
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { name = r.TLS.ServerName }))
	defer gateway.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gateway.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, _ := warmpath(t.Context(), "doctor", "--live", gateway.URL, "--ca", ca, "--from", nothingDecided(t), "-H", "host: example.com:443")
	if name != "example.com" {
		t.Errorf("asked for %q: %s", name, errs)
	}
}

// What one server has in its cache says nothing of another's.
func TestDoctorJudgesOneServer(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"usage": {"prompt_tokens_details": {"cached_tokens": 0}}}`)
	}))
	defer gateway.Close()
	for _, tt := range []struct {
		second, want string
		same         int
	}{
		{"127.0.0.1:1", "probe-cold probe-cold probe-cold", 3},
		{"127.0.0.1:2", "probe-elsewhere probe-elsewhere probe-elsewhere cache-unasked", 0},
	} {
		asked := map[string]bool{}
		admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d := view.Decision{Probe: r.URL.Query().Get("probe"), Chosen: "127.0.0.1:1", Served: "127.0.0.1:1", Ended: true}
			if asked[d.Probe] = d.Probe != ""; len(asked)%2 == 1 { // the first was for nothing
				d.Served = tt.second
			}
			_ = json.NewEncoder(w).Encode(view.Snapshot{Decisions: []view.Decision{d}})
		}))
		defer admin.Close()
		if got := strings.Join(ids(t, "doctor", "--json", "--live", gateway.URL, "--from", admin.URL), " "); got != tt.want {
			t.Errorf("the second served by %s: found %q, want %q", tt.second, got, tt.want)
		}
		clear(asked)
		out, _, _ := warmpath(t.Context(), "doctor", "--live", gateway.URL, "--from", admin.URL)
		if want := fmt.Sprintf("; 3 sent again, %d of them to the same server, of which 0 found", tt.same); !strings.Contains(out, want) {
			t.Errorf("the second served by %s: want %q:\n%s", tt.second, want, out)
		}
	}
}

// A gateway that redirects gets no probe's headers to anybody else.
func TestDoctorFollowsNoRedirect(t *testing.T) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect} {
		gateway := httptest.NewServer(http.RedirectHandler(elsewhere.URL, code))
		defer gateway.Close()
		for _, args := range [][]string{
			{"--live", gateway.URL, "--from", nothingDecided(t), "-H", "X-Api-Key: secret"},
			{"--live", elsewhere.URL, "--from", gateway.URL},
			{"--admin", gateway.URL},
		} {
			out, errs, exit := warmpath(t.Context(), append([]string{"doctor"}, args...)...)
			if want := fmt.Sprintf("%d %s", code, http.StatusText(code)); exit != exitFailed || !strings.Contains(out+errs, want) {
				t.Errorf("%q: exit %d, want %q:\n%s%s", args, exit, want, out, errs)
			}
		}
		if _, err := engineOf(t.Context(), strings.TrimPrefix(gateway.URL, "http://")); err == nil {
			t.Errorf("an engine's metrics are taken from where it redirects to")
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// What servers say does nothing to a terminal, and a finding is a line.
func TestDoctorOnTerminal(t *testing.T) {
	const body = `{"detail":"\u001b[2Jgone\r\n\u009b1mbold"}`
	hostile := answering(t, fmt.Sprintf("HTTP/1.1 503 \x1b]0;owned\x07\x1b[31mred\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body))
	cut := answering(t, "HTTP/1.1 503 cut\r\nContent-Length: 100\r\n\r\nshort")
	broken := answering(t, "HTTP/1.1 \x1b[31m\r\n\r\n")
	from := nothingDecided(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--live", hostile, "--from", from}, ": error: POST /v1/chat/completions: 503 Service Unavailable [probe-failed]\n"},
		{[]string{"--live", cut, "--from", from}, ": error: POST /v1/chat/completions: 503 Service Unavailable [probe-failed]\n"},
		{[]string{"--live", broken, "--from", from}, "malformed HTTP"},
		{[]string{"--live", from, "--from", hostile}, "503 Service Unavailable: ?[2Jgone???1mbold\n"},
		{[]string{"--admin", hostile}, "503 Service Unavailable: is that Envoy's admin listener?\n"},
	} {
		out, errs, exit := warmpath(t.Context(), append([]string{"doctor"}, tt.args...)...)
		if said := out + errs; exit != exitFailed || !strings.Contains(said, tt.want) || strings.ContainsAny(said, "\x1b\u009b\x07\r") {
			t.Errorf("%q: exit %d: %q, want %q", tt.args, exit, said, tt.want)
		}
	}
}

// answering returns the address of a server that answers every connection alike.
func answering(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			// The whole request is read, or closing would reset the connection.
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}
