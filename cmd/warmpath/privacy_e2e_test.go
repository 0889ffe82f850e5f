package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/testenv"
)

// tap stands on a connection and keeps what goes each way.
type tap struct {
	address  string
	mu       sync.Mutex
	to, from bytes.Buffer
}

func startTap(t *testing.T, target string) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &tap{address: listener.Addr().String()}
	var all sync.WaitGroup
	copying := func(to, from net.Conn, keep *bytes.Buffer) {
		defer to.Close()
		p := make([]byte, 64<<10)
		for {
			n, err := from.Read(p)
			x.mu.Lock()
			keep.Write(p[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
			if _, err := to.Write(p[:n]); err != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			all.Go(func() { copying(server, client, &x.to) })
			all.Go(func() { copying(client, server, &x.from) })
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return x
}

// said is what went to the target, and what came from it.
func (x *tap) said() (to, from string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.to.String(), x.from.String()
}

// send sends the request of a place. What it is answered does not matter, but
// that a model server answers.
func (p place) send(t *testing.T, s *stack.Stack, client *http.Client, what string) {
	t.Helper()
	body := p.body
	if body == nil {
		body = chat("hello", "you", false)
	}
	path := p.path
	if path == "" {
		path = "/v1/chat/completions"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, struct{ io.Reader }{bytes.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len(body))
	if p.unsized || p.trailer {
		request.ContentLength = -1
	}
	request.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(p.headers); i += 2 {
		if p.trailer {
			request.Trailer = http.Header{http.CanonicalHeaderKey(p.headers[i]): {p.headers[i+1]}}
			continue
		}
		request.Header.Set(p.headers[i], p.headers[i+1])
	}
	r, text, err := exchangeWith(client, request)
	if err != nil || r.Header.Get("x-replica") == "" {
		t.Errorf("%s: %v, %s by no replica: %.200s", what, err, r.Status, text)
	}
}

// private is one way in which warmpath runs, with everything that it says.
type private struct {
	mode    string // of Envoy, of bodyModes
	configs []stack.Config
	extra   string
	defect  bool
}

// Nothing of a client's comes out of warmpath: not its prompt, its keys, its
// tenant or what it writes in odd places, in no form, nor a fragment of it.
// Not in the log at its most talkative, gRPC's own included, in spans, recordings,
// metrics, pages for operators, answers to Envoy, the stacks of panics, or the
// dump of a process that is made to abort. Only spans and the live page have names:
// model, adapter, request id and trace state.
func TestNothingComesOut(t *testing.T) {
	auto := stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength}
	for name, p := range map[string]private{
		"every strategy": {mode: "none", configs: []stack.Config{
			{Strategy: "RANDOM"}, {Strategy: "LEAST_OUTSTANDING_REQUESTS"}, prefixAware(0), auto, {Strategy: "KV_AWARE"},
		}},
		"buffered":    {mode: "buffered alone", configs: []stack.Config{auto}},
		"full duplex": {mode: "full duplex", configs: []stack.Config{auto}},
		"no room":     {mode: "none", configs: []stack.Config{prefixAware(1)}, extra: "limits: {totalBodyBytes: 1048576, requestBodyBytes: 65536, requests: 2, inflateBytes: 65536}"},
		"a defect":    {mode: "none", configs: []stack.Config{prefixAware(0)}, defect: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.keeps(t)
		})
	}
}

// keeps lets requests with secrets in all places through, and then looks for them
// in all that warmpath has said.
func (p private) keeps(t *testing.T) {
	collector := startCollector(t)
	spans := startTap(t, collector.address)
	recordings := filepath.Join(t.TempDir(), "recordings")
	salt := recordInto(t, recordings, "salt")
	var extProc, xds *tap
	mode := bodyModes[0]
	for _, m := range bodyModes {
		if m.name == p.mode {
			mode = m
		}
	}
	o := stack.Options{
		Replica: fast, Replicas: 3, Bootstrap: mode.bootstrap(t), Inspect: 1,
		WarmpathEnv: []string{
			"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=99", "GOTRACEBACK=all", "OTEL_BSP_SCHEDULE_DELAY=20",
		},
		Between: func(a envoy.Addresses) (envoy.Addresses, error) {
			extProc, xds = startTap(t, a.ExtProc), startTap(t, a.XDS)
			a.ExtProc, a.XDS = extProc.address, xds.address
			return a, nil
		},
	}
	if p.defect {
		o.WarmpathEnv = append(o.WarmpathEnv, defectVariable+"=1")
	}
	for i := range p.configs {
		p.configs[i].OTLPEndpoint = spans.address
		p.configs[i].Extra = salt + "\nlog: {level: debug}\ndecision: {metadata: true, header: true}\n" + p.extra
	}
	o.Config = p.configs[0]
	s := testenv.Start(t, o)

	r := rand.New(rand.NewPCG(1, 1))
	var all, names leaks
	told := make(map[string]string) // by name, what Envoy tells warmpath
	clients := []*http.Client{clientOf(t, 1), clientOf(t, 2)}
	for i, config := range p.configs {
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for what := range places("") {
			if p.mode == "buffered alone" && (what == "upgrade" || what == "too large") {
				continue // Envoy itself answers neither there
			}
			text := secret(r)
			q, name := places(text)[what], fmt.Sprintf("%s under %s %d", what, config.Strategy, i)
			if names.add(name, text); !q.name {
				all.add(name, text)
			}
			if !q.unread && !p.defect && config.Strategy != "RANDOM" && config.Strategy != "LEAST_OUTSTANDING_REQUESTS" && p.extra == "" {
				told[name] = text
			}
			q.send(t, s, clients[0], name)
			if what != "upgrade" { // which HTTP/2 has not
				q.send(t, s, clients[1], name)
			}
		}
	}
	if p.defect && metric(t, s, "warmpath_problems_total", `problem="panic"`) == 0 {
		t.Error("nothing has panicked")
	}
	pages := p.pages(t, s)
	live, err := s.Admin(t.Context(), "/api/live")
	if err != nil || !p.defect && !strings.Contains(string(live), `"decisions":[{`) {
		t.Errorf("the live page has no decisions: %v", err)
	}
	p.abort(t, s, &all, secret(r))

	out := map[string]string{"the log": s.Warmpath.Output(), "pages": pages}
	files := readFiles(t, recordings)
	for name, text := range files {
		out[name] = text
	}
	heard, answered := extProc.said()
	if mode.name != "full duplex" { // where bodies go to Envoy and on by way of warmpath
		out["answers to Envoy"] = answered
	}
	_, out["the control plane"] = xds.said()
	for what, text := range out {
		if found := names.find(text); len(found) > 0 {
			t.Errorf("in %s: %q", what, found)
		}
	}
	exported, _ := spans.said()
	if found := all.find(exported); len(found) > 0 {
		t.Errorf("in spans: %q", found)
	}
	if found := all.find(string(live)); len(found) > 0 {
		t.Errorf("in the live page: %q", found)
	}
	// What was not there could not come out.
	for name, text := range told {
		if !strings.Contains(heard, text) && !strings.Contains(heard, strings.ToLower(text)) {
			t.Errorf("%s has not come to warmpath", name)
		}
	}
	if p.extra == "" && !p.defect && (len(files) == 0 || len(exported) < 10_000 || !strings.Contains(out["the log"], "[core]") || len(out["the log"]) == 1<<20 || !strings.Contains(out["the log"], "goroutine ")) {
		t.Errorf("%d files, %d bytes of spans; does the log have gRPC's words and a dump?", len(files), len(exported))
	}
}

// pages are all that the admin listener answers, also to those who ask strangely.
func (p private) pages(t *testing.T, s *stack.Stack) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/status", "/", "/debug/pprof/heap", "/debug/vars", "/config", "/explain"} {
		text, err := s.Admin(t.Context(), path)
		fmt.Fprintf(&all, "%s %v\n", text, err)
	}
	if !strings.Contains(all.String(), "warmpath_decisions_total") {
		t.Error("the pages have no metrics")
	}
	return all.String()
}

// abort makes warmpath print all its stacks and end, while it serves secrets.
func (p private) abort(t *testing.T, s *stack.Stack, all *leaks, text string) {
	t.Helper()
	all.add("in flight", text)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 3 {
		r, err := post(ctx, s, "/v1/chat/completions", chat(strings.Repeat(text, 40), text, true), "x-replica-hold", "1", "authorization", text)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 9000\r\nauthorization: %s\r\n\r\n{\"messages\":[{\"content\":\"%s", text, text); err != nil {
		t.Fatal(err)
	}
	tell(t, s, syscall.SIGQUIT)
	if err := s.Await(t.Context(), "the end", func() error {
		if !s.Warmpath.Ended() {
			return fmt.Errorf("it runs")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func readFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(data)
	}
	return files
}

// defectVariable makes the program one that panics at every decision.
const defectVariable = "WARMPATH_TEST_HAS_A_DEFECT"

// defective is main with a defect: what draws random numbers panics.
func defective() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	p, err := newProgram(ctx, os.Args[2], os.Stderr)
	if err != nil {
		panic(err)
	}
	settings, err := p.settings(p.config, 1)
	if err != nil {
		panic(err)
	}
	observer := telemetry.NewObserver(p.metrics, nil)
	observer.Log = p.log
	p.extproc = extproc.New(p.pools[0].router, settings, observer, func() uint64 { panic("a defect") })
	if err := p.run(ctx); err != nil {
		panic(err)
	}
}
