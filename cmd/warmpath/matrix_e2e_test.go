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
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// bodyMode is a way in which an operator may configure Envoy to send request
// bodies.
type bodyMode struct {
	name string
	// settings stand in the place of the shipped request_body_mode: NONE, and
	// filter before the filter's processing_mode.
	settings, filter string
	// overrides are the body modes that warmpath may ask for.
	overrides []string
	// streamed: Envoy sends the request on while its body is still coming.
	streamed bool
	// byText: warmpath keeps a streamed request until it has the body, or as much
	// of it as it reads.
	byText bool
	// hurried: not longer than 0.1 s, because message_timeout runs meanwhile.
	hurried bool
}

// The modes that can be asked for make the difference: "alone" are those of an
// operator who allows none of them.
var bodyModes = []bodyMode{
	{name: "none", settings: "request_body_mode: NONE", overrides: []string{"BUFFERED"}}, // as shipped
	{name: "none alone", settings: "request_body_mode: NONE"},
	{name: "buffered", settings: "request_body_mode: BUFFERED", overrides: []string{"NONE"}},
	{name: "buffered alone", settings: "request_body_mode: BUFFERED"},
	{name: "partial", settings: "request_body_mode: BUFFERED_PARTIAL", overrides: []string{"NONE", "BUFFERED"}},
	{name: "partial alone", settings: "request_body_mode: BUFFERED_PARTIAL"},
	{name: "streamed", settings: "request_body_mode: STREAMED", streamed: true},
	{
		name: "streamed without waiting", settings: "request_body_mode: STREAMED",
		filter: "send_body_without_waiting_for_header_response: true", streamed: true, byText: true, hurried: true,
	},
	{
		name: "full duplex", settings: "{request_body_mode: FULL_DUPLEX_STREAMED, request_trailer_mode: SEND}",
		streamed: true, byText: true,
	},
}

// bootstrap configures Envoy for the mode.
func (m bodyMode) bootstrap(t *testing.T) func([]byte) ([]byte, error) {
	const (
		mode     = "                request_body_mode: NONE\n"
		filter   = "              failure_mode_allow: true\n"
		override = "              - {request_body_mode: %s, response_header_mode: SEND, response_trailer_mode: SEND}\n"
	)
	var settings, overrides strings.Builder
	for line := range strings.SplitSeq(strings.Trim(m.settings, "{}"), ", ") {
		fmt.Fprintf(&settings, "                %s\n", line)
	}
	more := filter
	if m.filter != "" {
		more += "              " + m.filter + "\n"
	}
	for _, o := range m.overrides {
		fmt.Fprintf(&overrides, override, o)
	}
	if len(m.overrides) == 0 {
		fmt.Fprintf(&overrides, override, "STREAMED") // is never asked for; an empty list would allow all
	}
	return testenv.InOrder(
		testenv.Replace(t, mode, settings.String()),
		testenv.Replace(t, filter, more),
		testenv.Replace(t, fmt.Sprintf(override, "BUFFERED"), overrides.String()),
	)
}

// framing is how a client says where a request body ends.
type framing string

const (
	withLength   framing = "content-length"
	chunked      framing = "chunked"  // in HTTP/2: DATA frames without content-length
	withTrailers framing = "trailers" // in HTTP/2: with content-length too
)

// cell is one kind of request of the matrix.
type cell struct {
	major   int // of the HTTP version
	size    int
	framing framing
	stream  bool
}

func (c cell) String() string {
	return fmt.Sprintf("HTTP%d/%d/%s/stream=%v", c.major, c.size, c.framing, c.stream)
}

// knownLength reports whether the request has a content-length. HTTP/1.1 has
// trailers only after chunks, and Go's HTTP/2 client only after a body.
func (c cell) knownLength() bool {
	return c.framing == withLength || c.framing == withTrailers && c.major == 2 && c.size > 0
}

const largest = 10 << 20

func cells() (list []cell) {
	for _, major := range []int{1, 2} {
		for _, size := range []int{0, 30, 64 << 10, 1 << 20, largest} {
			for _, f := range []framing{withLength, chunked, withTrailers} {
				if f == withTrailers && size == largest {
					continue // costs a second and shows nothing that 1 MiB does not
				}
				list = append(list, cell{major, size, f, false})
				if size > 0 { // without a body nobody asks for a stream
					list = append(list, cell{major, size, f, true})
				}
			}
		}
	}
	return list
}

// body is a completion of exactly the size, whose prompt begins as no other
// cell's of the mode. Most of a large one is not prompt, which the replica would
// have to hash.
func (c cell) body(number, size int) []byte {
	if size == 0 {
		return nil
	}
	const longestPrompt = 8 << 10
	begin, end := `{"prompt":"`, fmt.Sprintf(`","stream":%v}`, c.stream)
	if size > longestPrompt {
		end = `","user":"` + strings.Repeat("u", size-longestPrompt) + end
	}
	text := fmt.Sprintf("%02d is the number of this cell, all say something else. ", number)
	n := size - len(begin) - len(end)
	return []byte(begin + strings.Repeat(text, n/len(text)+1)[:n] + end)
}

// status is what the replica answers. Of the largest bodies it parses only some,
// because that takes most of the test's time.
func (c cell) status() int {
	switch {
	case c.size == 0:
		return http.StatusBadRequest
	case c.size == largest && !(c.stream && c.framing == withLength):
		return http.StatusTeapot
	}
	return http.StatusOK
}

// times is how often the request is sent: Envoy's fault with trailers in partial
// mode does not show every time.
func (m bodyMode) times(c cell) int {
	if c.framing == withTrailers && c.size < 1<<20 && strings.HasPrefix(m.name, "partial") {
		return 20
	}
	return 1
}

// unread says why a request is not routed by its text, as warmpath counts it,
// or "" when it is.
func (m bodyMode) unread(c cell) string {
	switch {
	case c.size == 0 && (c.knownLength() || m.byText):
		return "no_text"
	case m.byText:
		return ""
	case !c.knownLength():
		return "unknown_length"
	case c.size > envoy.BodyLimit:
		return "body_too_large"
	case m.streamed:
		return "unsupported_mode"
	case m.name == "none alone":
		return "body_not_sent"
	}
	return ""
}

// excused returns the documented reason for which Envoy itself may fail a
// request, or "".
func (m bodyMode) excused(c cell, status int, err error) string {
	switch {
	case c.size <= envoy.BodyLimit:
	case strings.HasPrefix(m.name, "buffered") && status == http.StatusRequestEntityTooLarge:
		return "the body overran Envoy's buffer before it heard that it need not keep it"
	case m.name == "partial alone" && errors.Is(err, context.DeadlineExceeded):
		return "Envoy lost the end of the body, which came while warmpath had its beginning"
	}
	return ""
}

// Every mode in which Envoy may send request bodies, with every kind of request:
// each is answered by a replica, which got just the bytes that were sent, once,
// and is the one that was decided: by the text where the mode allows it.
func TestBodyMatrix(t *testing.T) {
	for _, m := range bodyModes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x := &matrix{
				bodyMode: m, clients: map[int]*http.Client{1: clientOf(t, 1), 2: clientOf(t, 2)}, problems: make(map[string]int),
				stack: testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: prefixAware(0), Bootstrap: m.bootstrap(t), Inspect: 1}),
			}
			for i, c := range cells() {
				t.Run(c.String(), func(t *testing.T) {
					for range m.times(c) {
						x.serves(t, i, c)
					}
				})
			}
			atRest(t, x.stack)
			noMisses(t, x.stack)
			x.counted(t)
		})
	}
}

// matrix is the test of one mode.
type matrix struct {
	bodyMode
	stack   *stack.Stack
	clients map[int]*http.Client // by major version
	// sent and problems are what warmpath should have counted.
	sent     int
	problems map[string]int
}

// clientOf is a client that speaks one version of HTTP, 2 with prior knowledge.
func clientOf(t *testing.T, major int) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 100}
	transport.Protocols.SetHTTP1(major == 1)
	transport.Protocols.SetUnencryptedHTTP2(major == 2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// serves sends the request of one cell.
func (x *matrix) serves(t *testing.T, number int, c cell) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	x.sent++
	x.problems[x.unread(c)]++
	if x.byText && c.size > envoy.BodyLimit {
		x.problems["body_cut"]++ // its beginning decides
	}
	body, id, cut := c.body(number, c.size), fmt.Sprintf("request %d", x.sent), x.problem(t, "body_cut")
	r, text, err := exchangeWith(x.clients[c.major], c.request(ctx, t, x.stack, body, id))
	if why := x.excused(c, r.StatusCode, err); why != "" {
		t.Logf("status %d, %v: %s", r.StatusCode, err, why)
		return
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case r.StatusCode != c.status():
		t.Fatalf("%s, want %d: %.200s", r.Status, c.status(), text)
	case r.ProtoMajor != c.major:
		t.Errorf("answered in %s", r.Proto)
	case c.stream && c.status() == http.StatusOK && !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")):
		t.Errorf("the stream ends %q", text[max(0, len(text)-60):])
	}
	got := r.Header.Get("x-replica")
	arrivedOnce(t, x.stack, got, id, body)
	if x.unread(c) != "" {
		return // any will do
	}
	home := homesOf(t, x.stack, "/v1/completions", c.body(number, min(c.size, 64<<10)))[0]
	switch {
	case got == home:
	case x.hurried && x.problem(t, "body_cut") > cut:
		t.Logf("served by %s, home is %s: the body took too long", got, home)
	default:
		t.Errorf("served by %s, home is %s", got, home)
	}
}

// exchangeWith sends a request and reads the response to its end. The response
// is never nil.
func exchangeWith(client *http.Client, request *http.Request) (*http.Response, []byte, error) {
	r, err := client.Do(request)
	if err != nil {
		return new(http.Response), nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r, text, err
}

// problem is how often warmpath has counted a problem.
func (x *matrix) problem(t *testing.T, name string) int {
	t.Helper()
	n, err := x.stack.Metric(t.Context(), "warmpath_problems_total", fmt.Sprintf("problem=%q", name))
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// request is the cell's request. Its body is a reader of no known kind, so that
// only the cell decides on the framing.
func (c cell) request(ctx context.Context, t *testing.T, s *stack.Stack, body []byte, id string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/completions", struct{ io.Reader }{bytes.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = -1
	if c.knownLength() {
		request.ContentLength = int64(len(body))
		if len(body) == 0 {
			request.Body = http.NoBody
		}
	}
	if c.framing == withTrailers {
		request.Trailer = http.Header{"X-Checksum": {"none"}}
	}
	for name, value := range map[string]string{
		"content-type": "application/json", "x-request-id": id,
		"x-replica-first-token-ms": "0", "x-replica-tokens": "3", "x-replica-token-ms": "0",
	} {
		request.Header.Set(name, value)
	}
	if c.status() == http.StatusTeapot {
		request.Header.Set("x-replica-status", "418")
	}
	return request
}

// arrivedOnce fails the test unless one replica, the one at the address, got the
// request, and just the bytes of the body.
func arrivedOnce(t *testing.T, s *stack.Stack, address, id string, body []byte) {
	t.Helper()
	sum := sha256.Sum256(body)
	arrivals := 0
	for _, r := range s.Replicas.Replicas() {
		for _, record := range r.Requests() {
			if record.RequestID != id {
				continue
			}
			arrivals++
			if r.Name() != address {
				t.Errorf("%s got it, %s answered", r.Name(), address)
			}
			if want := (replica.Body{SHA256: hex.EncodeToString(sum[:]), Length: int64(len(body))}); record.Body != want {
				t.Errorf("the replica got %d bytes, %d were sent, or they differ (%s)", record.Body.Length, want.Length, record.BodyError)
			}
		}
	}
	if arrivals != 1 {
		t.Errorf("the request arrived %d times", arrivals)
	}
}

// counted compares what warmpath says of the requests with what was sent.
func (x *matrix) counted(t *testing.T) {
	t.Helper()
	if n, err := x.stack.Metric(t.Context(), "warmpath_decisions_total"); err != nil || int(n) != x.sent {
		t.Errorf("%v decisions (%v) for %d requests", n, err, x.sent)
	}
	delete(x.problems, "")
	for _, name := range []string{"no_text", "unknown_length", "body_too_large", "unsupported_mode", "body_not_sent", "body_cut"} {
		got, want := x.problem(t, name), x.problems[name]
		if got != want && !(x.hurried && got > want) {
			t.Errorf("%s counted %v times, want %d", name, got, want)
		}
		delete(x.problems, name)
	}
	if len(x.problems) > 0 {
		t.Errorf("not compared: %v", x.problems)
	}
}
