package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// line is a line of the example's access log.
type line struct {
	RequestID string `json:"request_id"`
	Status    int
	Upstream  string
	Attempts  int
	Decision  struct {
		Strategy, Reason, Chosen, Key, Pool string
		Load, Bound, Rank, Chars, Depth     *float64
		WarmChars                           *float64 `json:"warm_chars"`
	}
}

// logLines reads the lines of an access log once there are n.
func logLines(t *testing.T, s *stack.Stack, path string, n int) (lines []line) {
	t.Helper()
	if err := s.Await(t.Context(), "the access log", func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines = nil
		for text := range strings.Lines(string(text)) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				return fmt.Errorf("%w in %.300q", err, text)
			}
			lines = append(lines, l)
		}
		if len(lines) < n {
			return fmt.Errorf("%d lines, want %d", len(lines), n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

// Envoy with the access log of the example writes what was decided, also for a request that
// warmpath did not decide on; and the client is told the same in a header, if it is to be.
func TestDecisionsAreTold(t *testing.T) {
	snippet, err := os.ReadFile("../../examples/access-log/access_log.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "access.log")
	const at = "          codec_type: AUTO "
	logging := testenv.Replace(t, at, strings.Replace(string(snippet), "/dev/stdout", path, 1)+at)
	config := stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength, Extra: noHealth + "\ndecision: {metadata: true, header: true}"}
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: config, Inspect: 1, Bootstrap: logging})
	const own = "telling-"
	send := func(id string, want bool) http.Header {
		t.Helper()
		r, err := post(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat("Tell me. ", 200), "CANARY", false), "x-request-id", own+id)
		if err != nil {
			t.Fatal(err)
		}
		if text := readAll(t, r); r.StatusCode != http.StatusOK {
			t.Fatalf("%s %.200s", r.Status, text)
		}
		if got := r.Header.Get("x-warmpath-decision"); (got != "") != want {
			t.Errorf("request %s: x-warmpath-decision %q", id, got)
		}
		return r.Header
	}
	send("cold", true)
	header := send("warm", true)
	config.Extra = noHealth + "\ndecision: {metadata: true, header: false}"
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	send("unsaid", false)
	atRest(t, s)
	s.Warmpath.Kill()
	send("undecided", false)

	found := make(map[string]line)
	for _, l := range logLines(t, s, path, 4) {
		if id, ok := strings.CutPrefix(l.RequestID, own); ok {
			found[id] = l
		}
	}
	for _, id := range []string{"cold", "warm", "unsaid"} {
		l := found[id]
		d := l.Decision
		if d.Strategy != "PREFIX_AWARE" || d.Chosen == "" || d.Chosen != l.Upstream || l.Status != 200 || l.Attempts != 1 ||
			len(d.Key) != 16 || d.Load == nil || d.Bound == nil || d.Rank == nil || d.WarmChars == nil || d.Depth == nil {
			t.Errorf("request %s: %+v", id, l)
			continue
		}
		if (*d.WarmChars > 0) != (id != "cold") || *d.Chars < 1800 {
			t.Errorf("request %s: %v of %v characters are warm", id, *d.WarmChars, *d.Chars)
		}
	}
	if l := found["undecided"]; l.Status != 200 || l.Decision.Reason != "" || l.Upstream == "" {
		t.Errorf("without warmpath: %+v", l)
	}
	if got, want := header.Get("x-warmpath-decision"), "reason="+found["warm"].Decision.Reason+"; chosen="+header.Get("x-replica"); !strings.Contains(got, want) {
		t.Errorf("x-warmpath-decision %q, want %q in it", got, want)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "CANARY") {
		t.Error("the prompt is in the access log")
	}
}
