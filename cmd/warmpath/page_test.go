package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// shownConfig is a server that has something to show.
const shownConfig = `listen: {extProc: "127.0.0.1:0", xds: "", admin: "127.0.0.1:0"}
routingConfig: {routingStrategy: PREFIX_AWARE}
membership: {static: [{address: "10.0.0.1:80"}, {address: "10.0.0.2:80"}, {address: "10.0.0.3:80"}]}
health: {path: ""}
pools:
- {name: other, models: [small], routingConfig: {routingStrategy: RANDOM}, membership: {static: [{address: "10.0.1.1:80"}, {address: "10.0.1.2:80"}]}, health: {path: ""}}
`

// settled waits until the server has its membership.
func (r running) settled(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for r.pools[0].router.Membership().Len() == 0 || len(r.pools) > 1 && r.pools[1].router.Membership().Len() == 0 {
		if time.Now().After(deadline) {
			t.Fatal("there is no membership")
		}
		select {
		case <-time.NewTimer(5 * time.Millisecond).C:
		case <-t.Context().Done():
		}
	}
}

func (r running) url() string { return "http://" + r.listeners.admin.Addr().String() }

// decide has the server's observer hear of a decision of its router's.
func (r running) decide(i int) extproc.Record {
	levels := []uint64{1, 2, 3, 4, uint64(100 + i)}
	d, slot := r.pools[0].router.Table().Pick(route.Request{Key: levels[4], Keyed: true, Levels: levels, Chars: 1280, Now: r.extproc.Now()})
	defer slot.Release()
	now := time.Now()
	record := extproc.Record{Began: now, Scanned: now, Decided: now, KeyChars: 1280, RequestID: fmt.Sprint("id-", i), Decision: d}
	r.live.Decided(&record)
	return record
}

// command runs a command of the program and returns what it printed.
func command(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// The page's state is that of the server: pools, endpoints, decisions, configuration.
func TestLiveState(t *testing.T) {
	p := startWith(t, t.TempDir(), shownConfig)
	p.settled(t)
	for i := range 5 {
		p.decide(i)
	}
	answer, err := http.Get(p.url() + "/api/live")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var s view.Snapshot
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	if len(s.Pools) != 2 || s.Pools[0].Name != "default" || s.Pools[0].Strategy != "PREFIX_AWARE" || len(s.Pools[0].Members) != 3 ||
		s.Pools[0].Requests != 5 || s.Pools[1].Name != "other" || s.Pools[1].Strategy != "RANDOM" || len(s.Pools[1].Members) != 2 {
		t.Errorf("the pools are %+v", s.Pools)
	}
	if len(s.Decisions) != 5 || s.Decisions[4].RequestID != "id-4" || s.Decisions[4].Reason != "home" && s.Decisions[4].Reason != "warm_elsewhere" {
		t.Errorf("the decisions are %+v", s.Decisions)
	}
	if m := s.Pools[0].Members[0]; m.Address != "10.0.0.1:80" || m.State != "healthy" || m.Weight != 1 || m.Bound == 0 {
		t.Errorf("an endpoint is %+v", m)
	}
	if !strings.Contains(s.Config, "routingStrategy: PREFIX_AWARE") || s.Generation != 1 {
		t.Errorf("the configuration %d is %s", s.Generation, s.Config)
	}
}

// A running server tells what it would decide, and that leaves no trace.
func TestExplainFrom(t *testing.T) {
	folder := t.TempDir()
	p := startWith(t, folder, shownConfig)
	p.settled(t)
	const secret = "a very secret question"
	file := filepath.Join(folder, "body.json")
	body := `{"model":"large","messages":[{"role":"user","content":"` + strings.Repeat(secret+". ", 60) + `"}],"prompt_cache_key":"tenant-of-mine"}`
	authority.Replace(t, file, []byte(body))
	code, out, errs := command(t, "", "explain", "--from", p.url(), "--json", file)
	var first, again view.Explanation
	if err := json.Unmarshal([]byte(out), &first); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v: %s %s", code, err, out, errs)
	}
	if first.Decision.Chosen == "" || first.Decision.Chosen != first.Homes[0].Address || first.Decision.Reason != "home" || len(first.Decision.Key) != 16 || first.Decision.Cached != 0 || first.Homes[0].Load != 0 {
		t.Errorf("explained as %+v", first)
	}
	if strings.Contains(out, "secret") || strings.Contains(out, "tenant-of-mine") || strings.Contains(out, "large") {
		t.Errorf("the answer has words of the request in it: %s", out)
	}
	_, out, _ = command(t, body, "explain", "--from", p.url(), "--json", "-")
	if err := json.Unmarshal([]byte(out), &again); err != nil || again.Decision.Chosen != first.Decision.Chosen || again.Decision.Cached != 0 {
		t.Errorf("asked again it says %s (%v)", out, err)
	}
	if n := outstanding(p.loads); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
	code, out, _ = command(t, strings.Replace(body, "large", "small", 1), "explain", "--from", p.url(), "-")
	if code != exitOK || !strings.Contains(out, "pool      other") || !strings.Contains(out, "drawn at random") {
		t.Errorf("exit %d: %s", code, out)
	}
	for want, args := range map[string][]string{
		"leave -config":         {"--from", p.url(), "--show-text", file},
		"want http://host:port": {"--from", "127.0.0.1:9004", file},
		"-ca":                   {"--from", p.url(), "--ca", "none.pem", file},
		"-cert and -key":        {"--from", p.url(), "--cert", "none.pem", file},
		"no such file":          {"--from", p.url(), "none.json"},
		"begins with /":         {"--from", p.url(), "--path", "nowhere", file},
	} {
		if code, _, errs := command(t, "", append([]string{"explain"}, args...)...); code == exitOK || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %s, want %q", args, code, errs, want)
		}
	}
}

// The terminal's view has what the page has, in lines.
func TestTop(t *testing.T) {
	p := startWith(t, t.TempDir(), shownConfig)
	p.settled(t)
	for i := range 20 {
		p.decide(i)
	}
	code, out, errs := command(t, "", "top", "--once", "--from", p.url())
	for _, want := range []string{"pool default  PREFIX_AWARE  prefixLength auto", "10.0.0.3:80", "pool other  RANDOM", "last decisions", "hot ", "configuration 1"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, %s, want %q in\n%s", code, errs, want, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines, to := io.Pipe()
	var all sync.WaitGroup
	all.Go(func() {
		var stderr bytes.Buffer
		if code := run(ctx, []string{"top", "--interval", "100ms", "--from", p.url()}, nil, to, &stderr); code != exitOK {
			t.Errorf("exit %d: %s", code, stderr.String())
		}
		_ = to.Close()
	})
	text := make([]byte, 4096)
	for range 3 {
		n, err := lines.Read(text)
		if err != nil || !strings.Contains(string(text[:n]), "endpoints=5") || strings.Count(string(text[:n]), "\n") != 1 {
			t.Errorf("a line is %q (%v)", text[:n], err)
		}
	}
	cancel()
	_, _ = io.Copy(io.Discard, lines)
	all.Wait()
	for want, args := range map[string][]string{
		"100ms to 1m":     {"--interval", "1ms"},
		"no arguments":    {"x"},
		"want http":       {"--from", "nowhere"},
		"connection refu": {"--once", "--from", "http://127.0.0.1:1"},
	} {
		if code, _, errs := command(t, "", append([]string{"top"}, args...)...); code == exitOK || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
}

// A view fits its screen, whatever there is to show.
func TestTopFits(t *testing.T) {
	s := view.Snapshot{Pools: make([]view.Pool, 2)}
	for i := range 500 {
		s.Pools[0].Members = append(s.Pools[0].Members, view.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250)})
	}
	for i := range 30 {
		s.Decisions = append(s.Decisions, view.Decision{ID: uint64(i), Sentence: strings.Repeat("μ ", 200)})
		s.Pools[1].Hot = append(s.Pools[1].Hot, view.Hot{})
	}
	s.Warnings = []view.Warning{{Text: "text", Advice: "advice"}}
	s.Pools[0].Members[0].FirstTokenWarm = 0.0123
	for _, c := range []struct {
		m    view.Endpoint
		want string
	}{
		{view.Endpoint{}, "-"},
		{view.Endpoint{FirstTokenWarm: 0.0123}, "0.012 s / -"},
		{view.Endpoint{FirstTokenUnknown: 0.5}, "0.5 s"},
		{view.Endpoint{FirstTokenWarm: 0.1, FirstTokenCold: 0.4, FirstTokenUnknown: 0.2}, "0.1 s / 0.4 s / 0.2 s"},
	} {
		if got := firstTokens(c.m); got != c.want {
			t.Errorf("first tokens %q, want %q", got, c.want)
		}
	}
	if text := string(topView(s, 120, 50)); !strings.Contains(text, "0.012 s / -") {
		t.Errorf("no time to the first token in\n%s", text)
	}
	for _, size := range []struct{ width, lines int }{{80, 23}, {20, 5}, {1, 1}, {200, 100}} {
		got := strings.Split(strings.TrimSuffix(string(topView(s, size.width, size.lines)), "\n"), "\n")
		if len(got) > size.lines {
			t.Errorf("%v: %d lines", size, len(got))
		}
		for _, line := range got {
			if n := len([]rune(line)); n > size.width {
				t.Errorf("%v: a line of %d characters", size, n)
			}
		}
	}
	if text := string(draw(t.Context(), &client{http: http.DefaultClient, base: "http://127.0.0.1:1"}, 80, 24)); !strings.Contains(text, "asking again") || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
		t.Errorf("without a server: %q", text)
	}
}

// A policy on trial has a line, below its pool's.
func TestTopTellsOfTrials(t *testing.T) {
	s := view.Snapshot{Pools: []view.Pool{{Name: "default", Trials: []view.Trial{
		{
			Kind: "shadow", Share: 1, Strategy: "KV_AWARE", PrefixLength: "auto", ConcurrencyThreshold: "8", Moved: new(0.5),
			Main:  view.Outcome{Requests: 10, Expected: new(0.25), Overflow: 0.5, BusiestOverMean: new(1.5)},
			Tried: view.Outcome{Requests: 11, Expected: new(0.75), BusiestOverMean: new(1.25)},
		},
		{Kind: "split", Share: 0.05, Strategy: "RANDOM", PrefixLength: "auto", ConcurrencyThreshold: "auto"},
	}}}}
	text := string(topView(s, 0, 50))
	for _, want := range []string{
		"shadow of 100.0%  KV_AWARE  prefixLength auto  concurrencyThreshold 8  expected hits 75.0% (main 25.0%)  overflow 0.0% (50.0%)  requests 11 (10)  would move 50.0%  busiest/mean 1.25 (1.50)\n",
		"split of 5.0%  RANDOM  prefixLength auto  concurrencyThreshold auto  expected hits - (main -)  overflow 0.0% (0.0%)  requests 0 (0)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// q, Ctrl-C and the end of the input end it; other keys do not.
func TestTopKeys(t *testing.T) {
	for _, keys := range []string{"q", "xyQ", "\x03", "abc\x04", "", "xyz"} {
		ended := 0
		awaitQuit(strings.NewReader(keys), func() { ended++ })
		if ended != 1 {
			t.Errorf("%q: ended %d times", keys, ended)
		}
	}
}

// Where others could reach the page it is refused without client certificates, and with
// them only an operator has it.
func TestPageNeedsOperators(t *testing.T) {
	open := strings.Replace(shownConfig, `admin: "127.0.0.1:0"`, `admin: "0.0.0.0:0"`, 1)
	port := func(p running) string {
		_, port, _ := strings.Cut(strings.ReplaceAll(p.listeners.admin.Addr().String(), "[::]", ""), ":")
		return port
	}
	p := startWith(t, t.TempDir(), open)
	for _, where := range []string{"/", "/api/live", "/api/live/events"} {
		answer, err := http.Get("http://127.0.0.1:" + port(p) + where)
		if err != nil {
			t.Fatal(err)
		}
		if text := readAll(t, answer); answer.StatusCode != http.StatusForbidden || !strings.Contains(text, "tls.admin.clientCA") {
			t.Errorf("%s: %s %s", where, answer.Status, text)
		}
	}
	if code, _, errs := command(t, "{}", "explain", "--from", "http://127.0.0.1:"+port(p), "-"); code != exitFailed || !strings.Contains(errs, "403 Forbidden") {
		t.Errorf("explain: exit %d, %s", code, errs)
	}
	files := newSecrets(t)
	secured := startWith(t, t.TempDir(), open+files.config("admin"))
	secured.settled(t)
	folder := t.TempDir()
	ca := filepath.Join(folder, "ca.pem")
	authority.Replace(t, ca, files.ca.PEM())
	cert, key := files.ca.Issue(t, nil, "envoy").Write(t, folder, "operator")
	from := []string{"top", "--once", "--from", "https://127.0.0.1:" + port(secured), "--ca", ca, "--server-name", "warmpath"}
	if code, _, errs := command(t, "", from...); code != exitFailed {
		t.Errorf("without a certificate: exit %d, %s", code, errs)
	}
	if code, out, errs := command(t, "", append(from, "--cert", cert, "--key", key)...); code != exitOK || !strings.Contains(out, "pool default") {
		t.Errorf("with one: exit %d, %s %s", code, out, errs)
	}
}

// On the loopback a name that somebody has made to point here reads nothing; where the
// listener is open it has names of its own, by which it is scraped. Another method is told
// so, not that there is nothing.
func TestAdminListener(t *testing.T) {
	shut := startWith(t, t.TempDir(), shownConfig)
	open := startWith(t, t.TempDir(), strings.Replace(shownConfig, `admin: "127.0.0.1:0"`, `admin: "0.0.0.0:0"`, 1))
	for _, c := range []struct {
		p                  running
		method, path, host string
		want               int
	}{
		{shut, "GET", "/status", "evil.example:9004", 421},
		{shut, "GET", "/metrics", "evil.example:9004", 421},
		{shut, "GET", "/status", "localhost:9004", 200},
		{shut, "GET", "/metrics", "127.0.0.1", 200},
		{shut, "GET", "/healthz", "evil.example:9004", 200},
		{open, "GET", "/status", "warmpath.inference.svc:9004", 200},
		{open, "GET", "/metrics", "warmpath.inference.svc:9004", 200},
		{shut, "GET", "/nothing", "localhost", 404},
		{shut, "POST", "/status", "localhost", 405},
		{shut, "POST", "/api/live", "localhost", 405},
		{shut, "GET", "/api/explain", "localhost", 405},
		{shut, "DELETE", "/api/live/events", "localhost", 405},
		{shut, "POST", "/", "localhost", 405},
	} {
		_, port, err := net.SplitHostPort(c.p.listeners.admin.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1:"+port+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if text := readAll(t, answer); answer.StatusCode != c.want {
			t.Errorf("%s %s of %s: %s, want %d: %.200s", c.method, c.path, c.host, answer.Status, c.want, text)
		}
	}
}

// A Unix socket has the page for who may open it.
func TestPageOnUnixSocket(t *testing.T) {
	folder := t.TempDir()
	socket := "unix:" + filepath.Join(folder, "admin.sock")
	p := startWith(t, folder, strings.Replace(shownConfig, `admin: "127.0.0.1:0"`, fmt.Sprintf("admin: %q", socket), 1))
	p.settled(t)
	if code, out, errs := command(t, "", "top", "--once", "--from", socket); code != exitOK || !strings.Contains(out, "pool default") {
		t.Errorf("exit %d, %s %s", code, out, errs)
	}
}
