package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// site is a server of the page with three endpoints and a few decisions.
type site struct {
	*httptest.Server
	page  *Server
	store *live.Store
	asked []Question
}

func newSite(t *testing.T) *site {
	t.Helper()
	var list []fleet.Endpoint
	for i := range 3 {
		list = append(list, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
	}
	set, _ := fleet.NewSet(list)
	router := route.NewRouter(route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength})
	router.SetMembership(set)
	began := time.Now().Add(-20 * time.Second)
	s := &site{store: live.New(began)}
	s.page = New(Options{
		Version: "v1", Store: s.store,
		Pools: []live.Pool{{Router: router, Members: func() (members []view.Endpoint) {
			for _, e := range set.Endpoints() {
				members = append(members, view.Endpoint{Address: e.Address, State: "healthy", Weight: 1})
			}
			return members
		}}},
		Config: func() (string, int) { return "zone: \"\"\n", 2 },
		Explain: func(q Question) (view.Explanation, error) {
			s.asked = append(s.asked, q)
			return view.Explanation{API: "chat"}, nil
		},
	})
	levels := []uint64{1, 2, 3, 4}
	for i := range 4 {
		d, _ := router.Table().Pick(route.Request{Key: 9, Keyed: true, Levels: levels, Chars: 1100, Now: int64(i) * 1e9})
		at := began.Add(time.Duration(i+1) * time.Second)
		s.store.Decided(&extproc.Record{Scanned: at, Decided: at.Add(20 * time.Microsecond), KeyChars: 1100, RequestID: fmt.Sprint("id-", i), Decision: d})
	}
	mux := http.NewServeMux()
	s.page.Register(mux)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.page.Close()
		s.Server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// send sends a request with headers, "name: value", and returns the answer.
func (s *site) send(t *testing.T, method, where string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+where, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// times are the parts of a snapshot that are never the same.
var times = regexp.MustCompile(`("at": )"[^"]*"`)

// The JSON is an interface: programs read it.
func TestSnapshotGolden(t *testing.T) {
	s := newSite(t)
	answer, text := s.send(t, http.MethodGet, "/api/live?seconds=0", nil)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", " "); err != nil {
		t.Fatal(err)
	}
	got := times.ReplaceAll(b.Bytes(), []byte(`$1"2026-11-30T12:00:00Z"`))
	const golden = "testdata/live.json"
	if *rewrite {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("go test -rewrite if this is meant:\n%s", got)
	}
	if _, text := s.send(t, http.MethodGet, "/api/live?seconds=5&decisions=1", nil); strings.Count(text, `"byReason"`) != 5 || strings.Count(text, `"requestId"`) != 1 {
		t.Errorf("five seconds and one decision are %s", text)
	}
}

// What a browser is allowed to do with the pages is next to nothing.
func TestSecurityHeaders(t *testing.T) {
	s := newSite(t)
	for _, where := range []string{"/", "/page/main.js", "/page/none.js", "/api/live", "/api/live?seconds=x", "/api/explain"} {
		method := http.MethodGet
		if where == "/api/explain" {
			method = http.MethodPost
		}
		answer, _ := s.send(t, method, where, nil)
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", where, name, got, want)
			}
		}
	}
	for _, word := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, word) {
			t.Errorf("the policy lacks %s", word)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error("the policy allows what is unsafe")
	}
}

// Web pages of others reach nothing, by whatever name.
func TestOtherOrigins(t *testing.T) {
	s := newSite(t)
	own := "Origin: " + s.URL
	for _, c := range []struct {
		method, where string
		headers       []string
		code          int
	}{
		{"GET", "/", nil, 200},
		{"GET", "/", []string{"Host: localhost:9004"}, 200},
		{"GET", "/", []string{"Host: LOCALHOST.:9004"}, 200},
		{"GET", "/", []string{"Host: [::1]:9004"}, 200},
		{"GET", "/", []string{"Host: evil.example:9004"}, 421},
		{"GET", "/page/main.js", []string{"Host: evil.example"}, 421},
		{"GET", "/api/live", []string{"Host: evil.example:9004"}, 421},
		{"GET", "/api/live", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"GET", "/api/live", []string{"Sec-Fetch-Site: none"}, 200},
		{"GET", "/api/live", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"GET", "/api/live", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"GET", "/api/live/events", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"GET", "/api/live", []string{"Origin: http://evil.example"}, 403},
		{"POST", "/api/explain", []string{"Content-Type: application/json", own, "Sec-Fetch-Site: same-origin"}, 200},
		{"POST", "/api/explain", []string{"Content-Type: application/json"}, 200},
		{"POST", "/api/explain", []string{"Content-Type: application/json", "Sec-Fetch-Site: cross-site"}, 403},
		{"POST", "/api/explain", []string{"Content-Type: application/json", "Origin: null"}, 403},
		{"POST", "/api/explain", []string{"Content-Type: application/json", "Origin: https://" + strings.TrimPrefix(s.URL, "http://")}, 403},
		{"POST", "/api/explain", []string{"Content-Type: application/json", "Host: evil.example"}, 421},
		{"POST", "/api/explain", []string{"Content-Type: text/plain"}, 415},
		{"POST", "/api/explain", []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"POST", "/api/explain", nil, 415},
		{"GET", "/api/explain", nil, 405},
		{"POST", "/api/live", nil, 405},
		{"POST", "/", nil, 405},
		{"POST", "/api/live/events", nil, 405},
		{"HEAD", "/api/live", nil, 200},
		{"HEAD", "/api/live/events", nil, 200},
	} {
		if answer, text := s.send(t, c.method, c.where, strings.NewReader("{}"), c.headers...); answer.StatusCode != c.code {
			t.Errorf("%s %s with %q: %s, want %d: %.200s", c.method, c.where, c.headers, answer.Status, c.code, text)
		}
	}
	if len(s.asked) != 2 {
		t.Errorf("%d bodies were explained, want 2", len(s.asked))
	}
}

// What is too much or makes no sense is refused, with the bound.
func TestBounds(t *testing.T) {
	s := newSite(t)
	const kind = "Content-Type: application/json"
	for _, c := range []struct {
		method, where, body string
		code                int
		want                string
	}{
		{"GET", "/api/live?seconds=901", "", 400, "0 to 900"},
		{"GET", "/api/live?decisions=-1", "", 400, "0 to 200"},
		{"GET", "/api/live?seconds=1;decisions=2", "", 400, "semicolon"},
		{"GET", "/api/live/events?interval=%zz", "", 400, "%zz"},
		{"POST", "/api/explain?path=/v1;header=a:b", "{}", 400, "semicolon"},
		{"GET", "/api/live/events?interval=1ms", "", 400, "100ms to 10s"},
		{"GET", "/api/live/events?interval=soon", "", 400, "100ms to 10s"},
		{"POST", "/api/explain", strings.Repeat("x", MaxBody+1), 413, "4194304 bytes"},
		{"POST", "/api/explain?path=v1", "{}", 400, "begins with /"},
		{"POST", "/api/explain?path=/" + strings.Repeat("x", maxPath), "{}", 400, "2048 bytes"},
		{"POST", "/api/explain?header=x", "{}", 400, "name: value"},
		{"POST", "/api/explain?header=x:" + strings.Repeat("y", maxHeader), "{}", 400, "1024 bytes"},
		{"POST", "/api/explain?" + strings.Repeat("header=a:b&", maxHeaders+1), "{}", 400, "at most 16"},
	} {
		if answer, text := s.send(t, c.method, c.where, strings.NewReader(c.body), kind); answer.StatusCode != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %.60s: %s %.200s, want %d with %q", c.method, c.where, answer.Status, text, c.code, c.want)
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("%d bodies were explained", len(s.asked))
	}
	body := strings.Repeat("x", MaxBody)
	if answer, _ := s.send(t, "POST", "/api/explain?path=/p&header=a:b&header=c:d", strings.NewReader(body), kind); answer.StatusCode != 200 || len(s.asked) != 1 || len(s.asked[0].Body) != MaxBody || s.asked[0].Path != "/p" || len(s.asked[0].Headers) != 2 {
		t.Errorf("the largest body: %s", answer.Status)
	}
}

// listener is an open stream.
type listener struct {
	answer *http.Response
	lines  *bufio.Reader
	close  func()
}

func (s *site) listen(t *testing.T) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/live/events?interval=100ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{answer: answer, lines: bufio.NewReader(answer.Body), close: func() { cancel(); _ = answer.Body.Close() }}
	t.Cleanup(l.close)
	return l
}

func (l *listener) next(t *testing.T) (s view.Snapshot) {
	t.Helper()
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
}

// A stream tells everything once, and then what is new.
func TestEvents(t *testing.T) {
	s := newSite(t)
	l := s.listen(t)
	first := l.next(t)
	if first.Config == "" || first.Version != "v1" || len(first.Reasons) == 0 || len(first.Seconds) < 20 || len(first.Decisions) != 4 || len(first.Pools) != 1 {
		t.Errorf("the first event is %+v", first)
	}
	second := l.next(t)
	if second.Config != "" || len(second.Seconds) > 1 || len(second.Decisions) != 0 || len(second.Pools) != 1 {
		t.Errorf("without news: %+v", second)
	}
	now := time.Now()
	s.store.Decided(&extproc.Record{Scanned: now, Decided: now, RequestID: "new"})
	for {
		if e := l.next(t); len(e.Decisions) > 0 {
			if len(e.Decisions) != 1 || e.Decisions[0].RequestID != "new" {
				t.Errorf("news: %+v", e.Decisions)
			}
			break
		}
	}
}

// What a listener was told to be waiting is told to have ended, however many were decided
// since: its table has the last 200.
func TestEventsTellTheEnd(t *testing.T) {
	s := newSite(t)
	l := s.listen(t)
	told := make(map[uint64]view.Decision)
	take := func() {
		for _, d := range l.next(t).Decisions {
			told[d.ID] = d
		}
	}
	take()
	decide := func(n int) (list []*extproc.Record) {
		for range n {
			now := time.Now()
			r := &extproc.Record{Scanned: now, Decided: now, RequestID: "r"}
			s.store.Decided(r)
			list = append(list, r)
		}
		return list
	}
	early := decide(60)
	take()
	take()
	late := decide(90)
	take()
	for _, r := range append(early, late...) {
		r.Status = 200
		s.store.Served(r)
		s.store.Ended(r)
	}
	take()
	take()
	for id, d := range told {
		if d.RequestID == "r" && (d.Status != 200 || !d.Ended) {
			t.Errorf("decision %d has ended, the listener has it as: status %d, ended %v", id, d.Status, d.Ended)
		}
	}
}

// So many listeners are served at once, no more, and the next one when one leaves.
func TestListenersAreBounded(t *testing.T) {
	s := newSite(t)
	var all []*listener
	for range MaxListeners {
		l := s.listen(t)
		l.next(t)
		all = append(all, l)
	}
	if answer, text := s.send(t, "GET", "/api/live/events", nil); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "16 streams") {
		t.Errorf("one too many: %s %s", answer.Status, text)
	}
	all[0].close()
	for {
		l := s.listen(t)
		if l.answer.StatusCode == http.StatusOK {
			l.next(t)
			break
		}
		l.close()
	}
}

// Who asks with HEAD for a stream takes no place, even if there is none.
func TestHeadOfEvents(t *testing.T) {
	s := newSite(t)
	for range MaxListeners {
		s.listen(t).next(t)
	}
	if answer, _ := s.send(t, http.MethodHead, "/api/live/events", nil); answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s, %q", answer.Status, answer.Header.Get("Content-Type"))
	}
}

// The end of the server ends the streams.
func TestCloseEndsStreams(t *testing.T) {
	s := newSite(t)
	l := s.listen(t)
	l.next(t)
	s.page.Close()
	s.page.Close()
	if _, err := io.Copy(io.Discard, l.answer.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// The page needs nothing from elsewhere, and every file that it names is there.
func TestPageIsWhole(t *testing.T) {
	s := newSite(t)
	entries, err := files.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
	address := regexp.MustCompile(`(?:https?:)?//[a-z0-9.-]+\.[a-z]+`)
	named := regexp.MustCompile(`(?:src="page/|href="page/|from "\./)([^"]+)"`)
	for _, e := range entries {
		answer, text := s.send(t, http.MethodGet, "/page/"+e.Name(), nil)
		if answer.StatusCode != 200 || !strings.HasPrefix(answer.Header.Get("Content-Type"), types[path.Ext(e.Name())]) || types[path.Ext(e.Name())] == "" {
			t.Errorf("%s: %s, %s", e.Name(), answer.Status, answer.Header.Get("Content-Type"))
		}
		if found := address.FindString(text); found != "" && found != "http://www.w3.org" {
			t.Errorf("%s names %s", e.Name(), found)
		}
		if strings.Contains(text, "innerHTML") || strings.Contains(text, "eval(") {
			t.Errorf("%s makes markup or code of text", e.Name())
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if _, err := files.ReadFile("page/" + match[1]); err != nil {
				t.Errorf("%s: %v", e.Name(), err)
			}
		}
	}
	if answer, text := s.send(t, http.MethodGet, "/", nil); answer.StatusCode != 200 || !strings.Contains(text, "<!doctype html>") {
		t.Errorf("the page: %s", answer.Status)
	}
	if answer, _ := s.send(t, http.MethodGet, "/page/..%2fweb.go", nil); answer.StatusCode != 404 {
		t.Errorf("a file that is none of the page's: %s", answer.Status)
	}
}

// Where others can reach the listener there is the reason and nothing else.
func TestRefuse(t *testing.T) {
	mux := http.NewServeMux()
	Refuse(mux, "because")
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/", nil), httptest.NewRequest("GET", "/api/live", nil),
		httptest.NewRequest("GET", "/api/live/events", nil), httptest.NewRequest("POST", "/api/explain", strings.NewReader("{}")),
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "because") {
			t.Errorf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
		}
	}
}

// BenchmarkEvent is an event with as many changes as there can be, which a busy server
// has each time.
func BenchmarkEvent(b *testing.B) {
	store := live.New(time.Now())
	page := New(Options{Store: store, Config: func() (string, int) { return "", 1 }})
	d := route.Decision{Strategy: route.PrefixAware, Reason: route.Home, Chosen: "10.0.0.1:80", Keyed: true}
	for range live.MaxDecisions {
		now := time.Now()
		store.Decided(&extproc.Record{Scanned: now, Decided: now, RequestID: "0b8e4a86-5f0b-4a4e-9d5c-2f8a1f0f1c11", Model: "model", Decision: d})
	}
	size := 0
	for b.Loop() {
		e, _ := page.event(live.Since{Decisions: live.MaxDecisions}, false)
		size = len(encode(e))
	}
	b.ReportMetric(float64(size), "B/event")
}

// A probe's decision is asked for by its id.
func TestProbe(t *testing.T) {
	s := newSite(t)
	id := strings.Repeat("0a", 16)
	now := time.Now()
	s.store.Decided(&extproc.Record{Scanned: now, Decided: now, Probe: id, RequestID: "probe", Decision: route.Decision{Chosen: "10.0.0.1:80"}})
	for _, c := range []struct {
		query, body string
		code, found int
	}{
		{query: id, code: http.StatusOK, found: 1},
		{query: strings.Repeat("0b", 16), code: http.StatusOK},
		{query: "luck", code: http.StatusBadRequest, body: `probe=\"luck\": want 32 hex digits`},
		{query: strings.ToUpper(id), code: http.StatusBadRequest, body: "want 32 hex digits"},
	} {
		answer, text := s.send(t, http.MethodGet, "/api/live?seconds=0&probe="+c.query, nil)
		if answer.StatusCode != c.code || !strings.Contains(text, c.body) {
			t.Errorf("%s: %s: %s", c.query, answer.Status, text)
			continue
		}
		var v view.Snapshot
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if len(v.Decisions) != c.found || c.found == 1 && (v.Decisions[0].Probe != id || v.Decisions[0].RequestID != "probe") {
			t.Errorf("%s: found %+v", c.query, v.Decisions)
		}
	}
}
