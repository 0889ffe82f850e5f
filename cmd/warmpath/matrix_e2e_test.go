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
	"slices"
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
	// byText: a streamed body is read to the end of its prefix before Envoy may
	// send the request on, whatever its length.
	byText bool
}

var bodyModes = []bodyMode{
	{name: "NONE", settings: "request_body_mode: NONE", overrides: []string{"BUFFERED"}},
	{name: "BUFFERED", settings: "request_body_mode: BUFFERED", overrides: []string{"NONE"}},
	{name: "BUFFERED_PARTIAL", settings: "request_body_mode: BUFFERED_PARTIAL", overrides: []string{"NONE", "BUFFERED"}},
	{name: "STREAMED", settings: "request_body_mode: STREAMED", streamed: true},
	{
		name: "STREAMED_NOT_WAITING", settings: "request_body_mode: STREAMED",
		filter: "send_body_without_waiting_for_header_response: true", streamed: true, byText: false,
	},
	{
		name: "FULL_DUPLEX_STREAMED", settings: "{request_body_mode: FULL_DUPLEX_STREAMED, request_trailer_mode: SEND}",
		streamed: true, byText: false,
	},
}

// bootstrap configures Envoy for the mode. The matrix is about modes and not
// about the speed of the machine, so warmpath gets more time to answer.
func (m bodyMode) bootstrap(t *testing.T) func([]byte) ([]byte, error) {
	const (
		mode     = "                request_body_mode: NONE\n"
		filter   = "              message_timeout: 0.25s\n"
		override = "              - {request_body_mode: %s, response_header_mode: SEND, response_trailer_mode: SEND}\n"
	)
	var settings, more, overrides strings.Builder
	for line := range strings.SplitSeq(strings.Trim(m.settings, "{}"), ", ") {
		fmt.Fprintf(&settings, "                %s\n", line)
	}
	if m.filter != "" {
		fmt.Fprintf(&more, "              %s\n", m.filter)
	}
	for _, o := range m.overrides {
		fmt.Fprintf(&overrides, override, o)
	}
	if len(m.overrides) == 0 {
		fmt.Fprintf(&overrides, override, "NONE") // an empty list would allow all
	}
	return func(config []byte) ([]byte, error) {
		for old, replacement := range map[string]string{
			mode:                              settings.String(),
			filter:                            "              message_timeout: 5s\n" + more.String(),
			fmt.Sprintf(override, "BUFFERED"): overrides.String(),
		} {
			var err error
			if config, err = testenv.Replace(t, old, replacement)(config); err != nil {
				return nil, err
			}
		}
		return config, nil
	}
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

// knownLength reports whether the request has a content-length. HTTP/1.1 sends
// trailers only with chunks.
func (c cell) knownLength() bool {
	return c.framing == withLength || c.framing == withTrailers && (c.major == 2 || c.size == 0)
}

func cells() (list []cell) {
	for _, major := range []int{1, 2} {
		for _, size := range []int{0, 30, 64 << 10, 1 << 20, 10 << 20} {
			for _, f := range []framing{withLength, chunked, withTrailers} {
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
// cell's of the mode.
func (c cell) body(number, size int) []byte {
	if size == 0 {
		return nil
	}
	end := fmt.Sprintf(`","stream":%v}`, c.stream)
	text := fmt.Sprintf("%02d is the number of this cell, all say something else. ", number)
	n := size - len(`{"prompt":"`) - len(end)
	return []byte(`{"prompt":"` + strings.Repeat(text, n/len(text)+1)[:n] + end)
}

// unread says why a request is not routed by its text, as warmpath counts it,
// or "" when it is.
func (m bodyMode) unread(c cell) string {
	switch {
	case c.size == 0 && (c.framing == withLength || m.byText):
		return "no_text"
	case m.byText:
		return ""
	case !c.knownLength():
		return "unknown_length"
	case c.size > envoy.BodyLimit:
		return "body_too_large"
	case m.streamed:
		return "unsupported_mode"
	}
	return ""
}

// excused returns the documented reason for which Envoy itself may fail a
// request, or "".
func (m bodyMode) excused(c cell, status int, err error) string {
	switch {
	case m.name == "BUFFERED" && c.size > envoy.BodyLimit && status == http.StatusRequestEntityTooLarge:
		return "the body overran Envoy's buffer before warmpath's answer to the headers"
	case m.name == "BUFFERED_PARTIAL" && c.size > envoy.BodyLimit && errors.Is(err, context.DeadlineExceeded):
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
			s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: prefixAware(0), Bootstrap: m.bootstrap(t)})
			clients := map[int]*http.Client{1: clientOf(t, 1), 2: clientOf(t, 2)}
			problems := make(map[string]int)
			all := cells()
			for i, c := range all {
				problems[m.unread(c)]++
				t.Run(c.String(), func(t *testing.T) { m.serves(t, s, clients[c.major], i, c) })
			}
			atRest(t, s)
			noMisses(t, s)
			m.counted(t, s, len(all), problems)
		})
	}
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
func (m bodyMode) serves(t *testing.T, s *stack.Stack, client *http.Client, number int, c cell) {
	limit := 20 * time.Second
	if m.excused(c, 0, context.DeadlineExceeded) != "" {
		limit = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	body, id := c.body(number, c.size), "cell "+c.String()
	r, err := client.Do(c.request(ctx, t, s, body, id))
	var text []byte
	status := 0
	if err == nil {
		defer r.Body.Close()
		status = r.StatusCode
		text, err = io.ReadAll(r.Body)
	}
	if why := m.excused(c, status, err); why != "" {
		t.Logf("status %d, %v: %s", status, err, why)
		return
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case c.size == 0 && status != http.StatusBadRequest || c.size > 0 && status != http.StatusOK:
		t.Fatalf("%s: %.200s", r.Status, text)
	case r.ProtoMajor != c.major:
		t.Errorf("answered in %s", r.Proto)
	case c.stream != bytes.HasSuffix(text, []byte("data: [DONE]\n\n")):
		t.Errorf("the answer ends %q", text[max(0, len(text)-60):])
	}
	got := r.Header.Get("x-replica")
	if m.unread(c) == "" {
		if home := homesOf(t, s, "/v1/completions", c.body(number, min(c.size, 64<<10)))[0]; got != home {
			t.Errorf("served by %s, home is %s", got, home)
		}
	}
	arrivedOnce(t, s, got, id, body)
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
func (m bodyMode) counted(t *testing.T, s *stack.Stack, sent int, problems map[string]int) {
	t.Helper()
	if n, err := s.Metric(t.Context(), "warmpath_decisions_total"); err != nil || int(n) != sent {
		t.Errorf("%v decisions (%v) for %d requests", n, err, sent)
	}
	names := []string{"no_text", "unknown_length", "body_too_large", "unsupported_mode", "body_not_sent", "body_cut"}
	for name := range problems {
		if name != "" && !slices.Contains(names, name) {
			t.Errorf("no check for problem %s", name)
		}
	}
	for _, name := range names {
		if n, err := s.Metric(t.Context(), "warmpath_problems_total", fmt.Sprintf("problem=%q", name)); err != nil || int(n) != problems[name] {
			t.Errorf("%s counted %v times (%v), want %d", name, n, err, problems[name])
		}
	}
}
