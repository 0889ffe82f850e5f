package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// Decisions and endpoints over Unix sockets, which a killed warmpath leaves and
// the next one replaces.
func TestUnixSockets(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "ext_proc.sock"), filepath.Join(dir, "xds.sock")}
	config := prefixAware(0)
	config.ExtProc, config.XDS = "unix:"+paths[0], "unix:"+paths[1]
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: config})
	body := chat(strings.Repeat("Over a socket of this machine. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	decides := func(n int) {
		t.Helper()
		before, err := s.Metric(t.Context(), "warmpath_decisions_total")
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != home {
				t.Errorf("served by %s (%v), home is %s", got, err, home)
			}
		}
		if got, err := s.Metric(t.Context(), "warmpath_decisions_total"); err != nil || got != before+float64(n) {
			t.Errorf("%v requests decided on (%v), sent %d", got, err, n)
		}
	}
	decides(10)
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("%s: %v (%v), want mode 0660", path, info.Mode(), err)
		}
	}

	second, third := filepath.Join(dir, "second.yaml"), filepath.Join(dir, "third.sock")
	authority.Replace(t, second, []byte("listen: {extProc: \"unix:"+third+"\", xds: \""+config.XDS+"\", admin: \"\"}\nmembership: {static: []}\n"))
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"serve", second}, nil, &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "listen.xds: another process serves on the socket "+paths[1]) {
		t.Errorf("a second warmpath on the socket: exit %d: %s", code, errs.String())
	}

	if _, err := os.Lstat(third); !os.IsNotExist(err) {
		t.Errorf("the second warmpath left its other socket (%v)", err)
	}

	s.Warmpath.Kill()
	if _, err := os.Lstat(paths[0]); err != nil {
		t.Errorf("the killed process left no socket: %v", err)
	}
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitRouting(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitDecision(t, s, body)
	decides(10)
	noMisses(t, s)
	atRest(t, s)
	if err := s.Warmpath.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there after the end (%v)", path, err)
		}
	}
}
