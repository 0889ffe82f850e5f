package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/internal/stack"
)

// form is one way in which clients use the gateway.
type form struct {
	name    string
	size    int  // of the body in bytes, about
	unsized bool // sent without content-length, so that nobody reads it for a key
	parts   int  // sent in as many parts, 40 ms apart; 0 for at once
	stream  bool
	headers []string // what it asks of the replica
	// patience is when the client leaves; 0 for never.
	patience time.Duration
	// ends are the ways in which the request may end, separated by spaces: a
	// status; "cut", when the response breaks off; or "left", when the client does
	// not wait for it.
	ends string
	// attempts is how many replicas may get it at most; 0 means one.
	attempts int
}

const streamTokens = 10 // of 100 ms

// teapot spares the replicas the work for a large body.
var teapot = []string{"x-replica-status", "418"}

// mixed is what clients send in every scenario, over HTTP/1.1 and HTTP/2 each.
var mixed = []form{
	{name: "call", size: 2 << 10, ends: "200"},
	{name: "stream", size: 2 << 10, stream: true, headers: streaming, ends: "200"},
	{name: "large", size: 1 << 20, headers: teapot, ends: "418"},
	{name: "call", size: 3 << 10, ends: "200"},
	{name: "upload", size: 1 << 20, parts: 8, headers: teapot, ends: "418"},
	{name: "unsized upload", size: 256 << 10, parts: 4, unsized: true, headers: teapot, ends: "418"},
}

var streaming = []string{"x-replica-tokens", strconv.Itoa(streamTokens), "x-replica-token-ms", "100"}

// prefixes is how many system prompts the requests share.
const prefixes = 20

func (f *form) system(n int) string {
	return strings.Repeat(fmt.Sprintf("Fault %d. ", n%prefixes), 150)
}

// body is that of the nth request, which no other request has.
func (f *form) body(n int) []byte {
	system := f.system(n)
	body := chat(system, fmt.Sprintf("request %d @", n), f.stream)
	filler := bytes.Repeat([]byte("x"), max(0, f.size-len(system)))
	return bytes.Replace(body, []byte("@"), filler, 1)
}

// streamed is a body that asks for a stream.
func (f form) streamed(n int) []byte {
	f.stream = true
	return f.body(n)
}

// sent is one request and what became of it.
type sent struct {
	form    *form
	n       int
	sum     string // SHA-256 of the body
	length  int64
	got     string // as form.ends, or an error
	replica string // that answered
}

// workload is clients that send requests of all forms until they are stopped.
type workload struct {
	s     *stack.Stack
	url   string // where the clients send requests, whatever becomes of s
	forms []form
	least int // how many requests make a workload
	homes [prefixes]string

	// missed is what unsteered said at the start, unrouted are requests that a new
	// process left to Envoy: see restart.
	missed, unrouted int
	// calm is the number of a request from which on nothing disturbs warmpath, and
	// calmMissed what unsteered said then.
	calm, calmMissed int
	// roaming: the homes change, so nobody can say whether a request is at home.
	roaming bool

	stop   chan struct{}
	wg     sync.WaitGroup
	next   atomic.Int64
	inBody atomic.Int64 // uploads of which a part is on its way
	inSSE  atomic.Int64 // streams of which a part has come

	mu   sync.Mutex
	done []*sent
}

const loadClients = 24

// startWorkload starts the mixed load with some more forms in it.
func startWorkload(t *testing.T, s *stack.Stack, more ...form) *workload {
	t.Helper()
	return startLoad(t, s, loadClients, 200, append(append([]form(nil), mixed...), more...))
}

// startSteadyLoad starts what a gateway has at any time, for tests of what operators do:
// short calls and streams of a second, by a few clients.
func startSteadyLoad(t *testing.T, s *stack.Stack) *workload {
	t.Helper()
	l := startLoad(t, s, 8, 60, []form{
		{name: "call", size: 2 << 10, ends: "200"},
		{name: "stream", size: 2 << 10, stream: true, headers: streaming, ends: "200"},
		{name: "larger", size: 64 << 10, headers: teapot, ends: "418"},
	})
	l.roaming = true
	return l
}

func startLoad(t *testing.T, s *stack.Stack, clients, least int, forms []form) *workload {
	t.Helper()
	l := &workload{s: s, url: s.URL, forms: forms, least: least, stop: make(chan struct{})}
	for i := range l.homes {
		l.homes[i] = homesOf(t, s, "/v1/chat/completions", mixed[0].body(i))[0]
	}
	l.missed = unsteered(t, s)
	l.calmMissed = l.missed
	for c := range clients {
		client := newClient(t, c%2 == 1)
		l.wg.Go(func() {
			for i := c; ; i++ {
				select {
				case <-l.stop:
					return
				default:
					l.send(t.Context(), client, &l.forms[i%len(l.forms)])
				}
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// newClient returns a client with connections of its own.
func newClient(t *testing.T, http2 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (l *workload) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
}

// send sends one request and books what became of it.
func (l *workload) send(ctx context.Context, client *http.Client, f *form) {
	r := &sent{form: f, n: int(l.next.Add(1))}
	body := f.body(r.n)
	sum := sha256.Sum256(body)
	r.sum, r.length = hex.EncodeToString(sum[:]), int64(len(body))
	patience := f.patience
	if patience == 0 {
		patience = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := l.begin(ctx, client, f, r.n, body)
	if err == nil {
		defer response.Body.Close()
		r.replica = response.Header.Get("x-replica")
		err = l.read(f, response)
		r.got = strconv.Itoa(response.StatusCode)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && f.patience > 0:
		r.got = "left"
	case err != nil && r.got == "200":
		r.got = "cut"
	case err != nil:
		r.got = strings.TrimSpace(r.got + " " + err.Error())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, r)
}

func (l *workload) begin(ctx context.Context, client *http.Client, f *form, n int, body []byte) (*http.Response, error) {
	upload := &paced{ctx: ctx, load: l, rest: body, part: len(body)}
	if f.parts > 0 {
		upload.part = len(body)/f.parts + 1
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/chat/completions", upload)
	if err != nil {
		return nil, err
	}
	if !f.unsized {
		request.ContentLength = int64(len(body))
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-request-id", fmt.Sprintf("load-%d", n))
	for i := 0; i+1 < len(f.headers); i += 2 {
		request.Header.Set(f.headers[i], f.headers[i+1])
	}
	response, err := client.Do(request)
	var wrapped *url.Error // with a port that differs from run to run
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return response, err
}

// read reads a response; one that says that it is whole must be.
func (l *workload) read(f *form, r *http.Response) error {
	if f.stream {
		l.inSSE.Add(1)
		defer l.inSSE.Add(-1)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || !f.stream || r.StatusCode != http.StatusOK {
		return err
	}
	tokens := bytes.Count(text, []byte(`"content":" `))
	if !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) || tokens != streamTokens {
		return fmt.Errorf("stream of %d tokens, want %d and the end mark", tokens, streamTokens)
	}
	return nil
}

// paced is a request body that is sent in parts.
type paced struct {
	ctx   context.Context
	load  *workload
	rest  []byte
	part  int // the bytes of a part
	left  int // of the part under way
	begun bool
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if p.left == 0 {
		if err := p.wait(); err != nil {
			return 0, err
		}
		p.left = min(p.part, len(p.rest))
	}
	n := copy(b, p.rest[:p.left])
	p.rest, p.left = p.rest[n:], p.left-n
	return n, nil
}

// wait waits before each part but the first.
func (p *paced) wait() error {
	if !p.begun {
		p.begun = true
		return nil
	}
	p.load.inBody.Add(1)
	defer p.load.inBody.Add(-1)
	timer := time.NewTimer(40 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// Close implements io.Closer.
func (p *paced) Close() error { return nil }

// underway waits until uploads and streams are in the middle.
func (l *workload) underway(t *testing.T) {
	t.Helper()
	slow := slices.ContainsFunc(l.forms, func(f form) bool { return f.parts > 0 })
	if err := l.s.Await(t.Context(), "uploads and streams", func() error {
		if uploads, streams := l.inBody.Load(), l.inSSE.Load(); slow && uploads < 2 || streams < 2 {
			return fmt.Errorf("%d uploads and %d streams run", uploads, streams)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// ended is the number of requests that have ended.
func (l *workload) ended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.done)
}

// more waits until n further requests have ended.
func (l *workload) more(t *testing.T, n int) {
	t.Helper()
	for target := l.ended() + n; l.ended() < target; {
		next := min(l.ended()+10, target) // any wait has its limit, so a few at a time
		if err := l.s.Await(t.Context(), "more requests to end", func() error {
			if now := l.ended(); now < next {
				return fmt.Errorf("%d have ended, want %d", now, target)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// caughtUp waits until all requests that have begun until now have ended. It does
// not wait until Envoy gives up a connection, which takes 5 to 15 s.
func (l *workload) caughtUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	begun := int(l.next.Load())
	if err := l.s.Await(ctx, fmt.Sprintf("the first %d requests to end", begun), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		ended := 0
		for _, r := range l.done {
			if r.n <= begun {
				ended++
			}
		}
		if ended < begun {
			return fmt.Errorf("%d have not", begun-ended)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// report is what a workload came to.
type report struct {
	sent   int
	failed map[string]int // by how they ended, those that should have ended otherwise
	// astray are requests with a key that another replica than the home answered,
	// calmAstray those of them that nothing disturbed.
	astray, calmAstray int
	// altered are requests that a replica got otherwise than they were sent.
	altered []string
	// repeated are requests that more replicas got than may.
	repeated []string
}

// hungUp is the id of requests that hangUp begins.
const hungUp = "hung-up"

// report compares what was sent with what the replicas got. excused says which
// requests the fault itself broke.
func (l *workload) report(excused func(*sent) bool) report {
	r := report{failed: make(map[string]int)}
	byID := make(map[string]*sent)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.done {
		byID[fmt.Sprintf("load-%d", q.n)] = q
		r.sent++
		if !slices.Contains(strings.Fields(q.form.ends), q.got) && (excused == nil || !excused(q)) {
			r.failed[q.form.name+": "+q.got]++
		}
		if !q.form.unsized && q.replica != "" && q.replica != l.homes[q.n%prefixes] {
			r.astray++
			if q.n > l.calm {
				r.calmAstray++
			}
		}
	}
	received := make(map[*sent][]string) // by which replicas
	for _, one := range l.s.Replicas.Replicas() {
		for _, record := range one.Requests() {
			if record.RequestID == hungUp && record.BodyError != "" {
				continue
			}
			q := byID[record.RequestID]
			if !q.matches(record) {
				r.altered = append(r.altered, fmt.Sprintf("%s got %s as %+v", one.Name(), record.RequestID, record))
			}
			received[q] = append(received[q], fmt.Sprintf("%s: %+v", one.Name(), record))
		}
	}
	for q, by := range received {
		if q != nil && len(by) > max(1, q.form.attempts) && (excused == nil || !excused(q)) {
			r.repeated = append(r.repeated, fmt.Sprintf("%s %d (%s by %s) by %s", q.form.name, q.n, q.got, q.replica, by))
		}
	}
	return r
}

// matches reports whether a replica got just the bytes that were sent, or the
// beginning of them when the rest never came.
func (q *sent) matches(got replica.Record) bool {
	switch {
	case q == nil, got.ContentLength != -1 && got.ContentLength != q.length, got.Body.Length > q.length:
		return false
	case got.BodyError == "":
		return got.Body.SHA256 == q.sum
	}
	sum := sha256.Sum256(q.form.body(q.n)[:got.Body.Length])
	return got.Body.SHA256 == hex.EncodeToString(sum[:])
}

// calmed waits until nothing disturbs warmpath any more, and for some requests
// after that.
func (l *workload) calmed(t *testing.T) {
	t.Helper()
	awaitSteering(t, l.s)
	l.calmMissed, l.calm = unsteered(t, l.s), int(l.next.Load())
	l.more(t, 80)
}

// settled ends the workload and checks what must hold after every fault, but for
// the requests that are excused. before is what goroutines said before.
func (l *workload) settled(t *testing.T, before float64, excused func(*sent) bool) {
	t.Helper()
	l.more(t, l.least-l.ended())
	l.end()
	missed := unsteered(t, l.s)
	truthAgrees(t, l.s)
	atRest(t, l.s)
	noMisses(t, l.s)
	r := l.whole(t, excused)
	t.Logf("%d requests, of those with a home %d were served elsewhere, Envoy sent on %d by itself, warmpath let go %d",
		r.sent, r.astray, missed-l.missed, l.unrouted)
	if !l.roaming && (r.astray > missed-l.missed+l.unrouted || r.calmAstray > missed-l.calmMissed) {
		t.Errorf("%d requests were served elsewhere than at home, %d of them in calm, in which Envoy sent on %d by itself",
			r.astray, r.calmAstray, missed-l.calmMissed)
	}
	stillCounts(t, l.s)
	envoyAtRest(t, l.s)
	// A connection of Envoy's is worth a few; a leak would be one a request.
	if err := l.s.Await(t.Context(), "warmpath's goroutines to end", func() error {
		if now := goroutines(t, l.s); now > before+20 {
			return fmt.Errorf("%v run, before it were %v", now, before)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// whole fails the test unless every request was served as it should be, unaltered
// and once.
func (l *workload) whole(t *testing.T, excused func(*sent) bool) report {
	t.Helper()
	r := l.report(excused)
	if len(r.failed) > 0 || len(r.altered) > 0 || len(r.repeated) > 0 {
		t.Errorf("of %d requests failed %v, altered %q, repeated %q", r.sent, r.failed, r.altered, r.repeated)
	}
	return r
}

// stillCounts fails the test unless warmpath counts what runs now. On a busy
// machine Envoy may have sent some of it on by itself: then others are tried.
func stillCounts(t *testing.T, s *stack.Stack) {
	t.Helper()
	for range 10 {
		missed := unsteered(t, s)
		open, _ := holdOpen(t, s, mixed[0].streamed(0), 5)
		calm := unsteered(t, s) == missed
		if calm {
			truthAgrees(t, s)
		}
		open.close()
		atRest(t, s)
		if calm {
			return
		}
		awaitSteering(t, s)
	}
	t.Error("Envoy sends requests on by itself again and again")
}

// envoyAtRest fails the test unless Envoy too counts nothing as running.
func envoyAtRest(t *testing.T, s *stack.Stack) {
	t.Helper()
	if err := s.AwaitEnvoyRest(t.Context()); err != nil {
		t.Error(err)
	}
}

func goroutines(t *testing.T, s *stack.Stack) float64 {
	t.Helper()
	n, err := s.Metric(t.Context(), "go_goroutines")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unsteered is how many requests Envoy has sent on without warmpath's word.
func unsteered(t *testing.T, s *stack.Stack) int {
	t.Helper()
	n, err := s.PassedOver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func envoyCounter(t *testing.T, s *stack.Stack, name string) int {
	t.Helper()
	n, err := s.EnvoyCounter(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitSteering waits until Envoy has found warmpath healthy again.
func awaitSteering(t *testing.T, s *stack.Stack) {
	t.Helper()
	if err := s.AwaitSteering(t.Context()); err != nil {
		t.Fatal(err)
	}
}
