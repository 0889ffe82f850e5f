package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// running is the program in this process, on free ports.
type running struct{ *program }

func startProgram(t *testing.T, extra string) running {
	t.Helper()
	path := filepath.Join(t.TempDir(), "warmpath.yaml")
	authority.Replace(t, path, []byte(`listen: {extProc: "127.0.0.1:0", xds: "127.0.0.1:0", admin: "127.0.0.1:0"}
membership: {static: []}
`+extra))
	ctx, cancel := context.WithCancel(t.Context())
	p, err := newProgram(ctx, path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- p.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return running{p}
}

// awaitMetric waits for a line of the metrics.
func (r running) awaitMetric(t *testing.T, want string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for ticker := time.NewTicker(10 * time.Millisecond); ; <-ticker.C {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(r.metrics.Registry(), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if strings.Contains(w.Body.String(), want+"\n") {
			ticker.Stop()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the metrics", want)
		}
	}
}

// get asks the admin listener over a connection of its own.
func (r running) get(t *testing.T, files *secrets, pairs ...authority.Pair) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: files.client(t, pairs...), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + r.listeners.admin.Addr().String() + "/healthz")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// The admin listener over TLS: for clients that are named, with files that are
// followed and are told of when they are wrong.
func TestAdminOverTLS(t *testing.T) {
	files := newSecrets(t)
	p := startProgram(t, files.config("admin"))
	good := files.ca.Issue(t, nil, "envoy")
	if text, err := p.get(t, files, good); err != nil || text != "ok\n" {
		t.Errorf("answer %q (%v)", text, err)
	}
	for name, pairs := range map[string][]authority.Pair{
		"no certificate":    nil,
		"another authority": {authority.New(t, "other").Issue(t, nil, "envoy")},
		"another name":      {files.ca.Issue(t, nil, "x")},
	} {
		if text, err := p.get(t, files, pairs...); err == nil {
			t.Errorf("%s: answer %q", name, text)
		}
	}
	p.awaitMetric(t, `warmpath_tls_refused_total{listener="admin"} 3`)

	next := files.ca.Issue(t, func(c *x509.Certificate) { c.NotAfter = time.Unix(2e9, 0) }, "warmpath")
	authority.Replace(t, files.path("warmpath.key"), []byte("half written"))
	p.awaitMetric(t, `warmpath_tls_certificate_errors_total{listener="admin"} 1`)
	if text, err := p.get(t, files, good); err != nil || text != "ok\n" {
		t.Errorf("with a bad key in the file: answer %q (%v)", text, err)
	}
	next.Write(t, files.folder, "warmpath")
	p.awaitMetric(t, `warmpath_tls_certificate_expiry_timestamp_seconds{listener="admin"} 2e+09`)
	if text, err := p.get(t, files, good); err != nil || text != "ok\n" {
		t.Errorf("after the rotation: answer %q (%v)", text, err)
	}
}

// Half a pair keeps warmpath from starting.
func TestBadCertificateIsRefusedAtStart(t *testing.T) {
	files := newSecrets(t)
	path := filepath.Join(t.TempDir(), "warmpath.yaml")
	authority.Replace(t, path, []byte("listen: {extProc: \"127.0.0.1:0\"}\nmembership: {static: []}\n"+strings.ReplaceAll(files.config("xds"), "warmpath.key", "envoy.key")))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"serve", path}, nil, &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), "tls.xds: certificate "+files.path("warmpath.pem")+" with key "+files.path("envoy.key")) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func TestCheckLooksAtCertificates(t *testing.T) {
	files := newSecrets(t)
	soon := time.Now().Add(time.Hour)
	files.ca.Issue(t, func(c *x509.Certificate) { c.NotAfter = soon }, "warmpath").Write(t, files.folder, "warmpath")
	files.ca.Issue(t, authority.Expired, "envoy").Write(t, files.folder, "envoy")
	if err := os.Chmod(files.path("envoy.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := files.path("warmpath.yaml") // beside them, so that relative paths are enough
	authority.Replace(t, path, []byte(`listen: {extProc: ":9002", admin: ":9004"}
membership: {static: []}
tls:
  extProc: {cert: warmpath.pem, key: warmpath.key, clientCA: absent.pem}
  xds: {cert: envoy.pem, key: envoy.key}
  admin: {cert: warmpath.pem, key: warmpath.key}
`))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"check", path}, nil, &out, &errs)
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339)[:16] }
	for _, want := range []string{
		path + ": tls.extProc: read file: stat " + files.path("absent.pem"),
		path + ": tls.xds: certificate " + files.path("envoy.pem") + ": expired on " + at(time.Now().Add(-time.Minute))[:13],
		path + ": tls.xds: key " + files.path("envoy.key") + ": everybody on this machine can read it (mode 0644",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in\n%s", want, errs.String())
		}
	}
	for _, want := range []string{
		path + ": warning: tls.admin: certificate " + files.path("warmpath.pem") + ": expires on " + at(soon),
		path + `: warning: listen.admin: ":9004" can be reached from other machines without a client certificate`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
}

func TestExposed(t *testing.T) {
	mutual := config.ListenerTLS{Cert: "a", Key: "b", ClientCA: "c"}
	for _, c := range []struct {
		address string
		tls     config.ListenerTLS
		want    bool
	}{
		{address: "127.0.0.1:1"},
		{address: "localhost:1"},
		{address: "[::1]:1"},
		{address: "127.9.9.9:1"},
		{address: "[::ffff:127.0.0.1]:1"},
		{address: "unix:/run/a"},
		{address: ""},
		{address: ":1", want: true},
		{address: "0.0.0.0:1", want: true},
		{address: "[::]:1", want: true},
		{address: "10.0.0.1:1", want: true},
		{address: ":1", tls: config.ListenerTLS{Cert: "a", Key: "b"}, want: true},
		{address: ":1", tls: mutual},
	} {
		got := exposed(config.Config{Listen: config.Listen{Admin: c.address}, TLS: config.TLS{Admin: c.tls}})
		if got != c.want {
			t.Errorf("%q with %+v: %t, want %t", c.address, c.tls, got, c.want)
		}
	}
}

// Anybody can be refused as often as they like: the log gets a line in a while,
// of bounded length.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	var logged bytes.Buffer
	p := &program{log: telemetry.NewLogger(&logged, "text", new(slog.LevelVar)), metrics: telemetry.NewMetrics(load.NewTracker())}
	r := p.newRefusals("admin")
	for i := range 1000 {
		r.add(fmt.Sprintf("%d %s", i, strings.Repeat("é", 4000)))
	}
	if n := bytes.Count(logged.Bytes(), []byte("\n")); n != 1 || logged.Len() > 1500 {
		t.Errorf("%d lines of %d bytes for 1000 refusals", n, logged.Len())
	}
	r.logged = r.logged.Add(-refusalsInterval)
	r.add("again")
	if !strings.Contains(logged.String(), "detail=again others=999") {
		t.Errorf("logged %q", logged.String())
	}
	running{p}.awaitMetric(t, `warmpath_tls_refused_total{listener="admin"} 1001`)
}
