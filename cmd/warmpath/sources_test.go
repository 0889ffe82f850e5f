package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/rollout"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// startWith starts the program in this process with the text as its configuration,
// in the folder.
func startWith(t *testing.T, folder, text string) running {
	t.Helper()
	path := filepath.Join(folder, "warmpath.yaml")
	authority.Replace(t, path, []byte(text))
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

// given is the membership of a pool that is given over HTTP.
func (r running) given(t *testing.T, i int) fleet.Set {
	t.Helper()
	set, known := r.pools[i].source.(*discovery.API).Membership()
	if !known {
		t.Error("no membership has been given")
	}
	return set
}

// The commands of the manual, as an operator pastes them.
func TestManualCommands(t *testing.T) {
	manual, err := os.ReadFile("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(manual), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	folder := t.TempDir()
	p := startWith(t, folder, "listen: {extProc: \"127.0.0.1:0\", xds: \"\", admin: \"127.0.0.1:0\"}\nmembership: {api: {stateFile: state.json}}\n")
	authority.Replace(t, filepath.Join(folder, "endpoints.yaml"), []byte("endpoints:\n- address: 10.0.0.1:8000\n- {address: 10.0.0.2:8000, weight: 3}\n"))
	script := strings.ReplaceAll(blocks[0][1], "127.0.0.1:9004", p.listeners.admin.Addr().String())
	command := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, e := range p.given(t, 0).Endpoints() {
		got = append(got, fmt.Sprintf("%s %d %s", e.Address, e.Weight, e.State))
	}
	if want := "10.0.0.1:8000 5 healthy, 10.0.0.2:8000 3 healthy"; strings.Join(got, ", ") != want {
		t.Errorf("the membership is %v, want %s", got, want)
	}
	if set, err := discovery.ReadFile(filepath.Join(folder, "state.json")); err != nil || !set.Equal(p.given(t, 0)) {
		t.Errorf("the state file has %v (%v)", set, err)
	}
}

// Each pool has a path of its own, and those of other sources have none.
func TestMembershipOfPools(t *testing.T) {
	p := startWith(t, t.TempDir(), `listen: {extProc: "127.0.0.1:0", xds: "", admin: "127.0.0.1:0"}
membership: {static: []}
pools:
- {name: llama, membership: {api: {}}}
- {name: other.pool, membership: {api: {}}}
`)
	for _, c := range []struct {
		path string
		code int
	}{
		{"/membership", http.StatusNotFound},
		{"/pools/llama/membership", http.StatusNoContent},
		{"/pools/other.pool/membership", http.StatusNoContent},
		{"/pools/none/membership", http.StatusNotFound},
	} {
		body := fmt.Sprintf("endpoints: [{address: '10.0.0.%d:80'}]", len(c.path))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+p.listeners.admin.Addr().String()+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, response); response.StatusCode != c.code {
			t.Errorf("%s: %s, want %d", c.path, response.Status, c.code)
		}
	}
	for i, want := range map[int]string{1: "10.0.0.23:80", 2: "10.0.0.28:80"} {
		if set := p.given(t, i); set.Len() != 1 || set.At(0).Address != want {
			t.Errorf("pool %d has %v, want %s", i, set, want)
		}
	}
}

// Off the loopback only a client certificate lets somebody change the membership.
func TestMembershipOverTLS(t *testing.T) {
	files := newSecrets(t)
	p := startWith(t, t.TempDir(), "listen: {extProc: \"127.0.0.1:0\", xds: \"\", admin: \"0.0.0.0:0\"}\nmembership: {api: {}}\n"+files.config("admin"))
	_, port, _ := strings.Cut(strings.ReplaceAll(p.listeners.admin.Addr().String(), "[::]", ""), ":")
	put := func(pairs ...authority.Pair) (int, error) {
		transport := &http.Transport{TLSClientConfig: files.client(t, pairs...), ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://127.0.0.1:"+port+"/membership", strings.NewReader("endpoints: [{address: '10.0.0.1:80'}]"))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "warmpath.example" // certificates are for names
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, err
		}
		readAll(t, response)
		return response.StatusCode, nil
	}
	for name, pairs := range map[string][]authority.Pair{
		"no certificate":    nil,
		"another authority": {authority.New(t, "other").Issue(t, nil, "envoy")},
		"another name":      {files.ca.Issue(t, nil, "x")},
	} {
		if code, err := put(pairs...); err == nil {
			t.Errorf("%s: answer %d", name, code)
		}
	}
	if _, known := p.pools[0].source.(*discovery.API).Membership(); known {
		t.Error("the membership was changed")
	}
	if code, err := put(files.ca.Issue(t, nil, "envoy")); err != nil || code != http.StatusNoContent {
		t.Errorf("answer %d, %v", code, err)
	}
	p.given(t, 0)
}

// told is a source that reports what the test says.
type told []discovery.Update

// Run implements discovery.Source.
func (s told) Run(_ context.Context, report func(discovery.Update)) error {
	for _, u := range s {
		report(u)
	}
	return nil
}

// A failure that goes on is counted each time and logged once, and again when it
// comes back.
func TestFailureIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	good, timeout, refused := discovery.Update{}, discovery.Update{Err: errors.New("timeout")}, discovery.Update{Err: errors.New("refused")}
	metrics := telemetry.NewMetrics(load.NewTracker())
	o := &pool{
		source: told{timeout, timeout, refused, refused, refused, good, refused, good, good}, status: new(poolStatus),
		log: slog.New(slog.NewTextHandler(&log, nil)), metrics: metrics.OfPool("p"), members: latest{updates: make(chan rollout.Membership, 1)}, changed: func() {},
	}
	if err := o.follow(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
		t.Errorf("%d errors are logged, want 3:\n%s", n, log.String())
	}
	running{&program{metrics: metrics}}.awaitMetric(t, `warmpath_membership_errors_total{pool="p"} 6`)
}
