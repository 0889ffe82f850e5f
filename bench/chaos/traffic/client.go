package traffic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// What Envoy is asked to add to each response: see [Reveal].
const (
	choicesHeader  = "x-chaos-choices"
	attemptsHeader = "x-chaos-attempts"
)

// Reveal changes an Envoy configuration so that responses tell whom the router
// had named, and how many endpoints Envoy tried.
func Reveal(bootstrap []byte) ([]byte, error) {
	const route = "                request_headers_to_remove: [x-gateway-destination-endpoint]\n"
	text := string(bootstrap)
	if n := strings.Count(text, route); n != 1 {
		return nil, fmt.Errorf("reveal choices: Envoy's configuration contains %q %d times, want once", route, n)
	}
	return []byte(strings.Replace(text, route, route+`                response_headers_to_add:
                - header: {key: `+choicesHeader+`, value: "%DYNAMIC_METADATA(envoy.lb:x-gateway-destination-endpoint)%"}
                - header: {key: `+attemptsHeader+`, value: "%UPSTREAM_REQUEST_ATTEMPT_COUNT%"}
`, 1)), nil
}

// longestWait is when a client without patience of its own gives up.
const longestWait = 30 * time.Second

// backOff is when a client tries again that was refused.
const backOff = 50 * time.Millisecond

// newClient returns a client with connections of its own.
func newClient(http2 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 64, DisableCompression: true}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	return &http.Client{Transport: transport}
}

// send sends a request and notes in q what became of it.
func (t *Traffic) send(ctx context.Context, client *http.Client, q *Sent, r load.Request) {
	sum := sha256.Sum256(r.Body)
	q.Sum, q.Length = hex.EncodeToString(sum[:]), int64(len(r.Body))
	patience := q.Form.Patience
	if patience == 0 {
		patience = longestWait
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q.Began = time.Now()
	response, err := t.begin(ctx, client, q, r)
	if err == nil {
		defer response.Body.Close()
		q.note(response)
		err = t.read(q, response)
		q.Outcome = strconv.Itoa(q.Status)
	}
	q.Ended = time.Now()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		q.Outcome = Refused
		_ = sleep(ctx, backOff)
	case errors.Is(err, context.DeadlineExceeded) && q.Form.Patience > 0:
		q.Outcome = Left
	case err != nil && q.Status == http.StatusOK:
		q.Outcome = Cut
	case err != nil:
		q.Outcome = strings.TrimSpace(q.Outcome + " " + err.Error())
	}
}

func (t *Traffic) begin(ctx context.Context, client *http.Client, q *Sent, r load.Request) (*http.Response, error) {
	upload := &paced{ctx: ctx, uploading: &t.uploading, rest: r.Body, part: len(r.Body)}
	if q.Form.Parts > 0 {
		upload.part = len(r.Body)/q.Form.Parts + 1
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.options.URL+r.Path, upload)
	if err != nil {
		return nil, err
	}
	if !q.Form.Unsized {
		request.ContentLength = q.Length
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-request-id", q.ID)
	if r.Tenant != "" {
		request.Header.Set("x-amzn-sagemaker-prefix-aware-id", r.Tenant)
	}
	for ask := q.Form.headers(); len(ask) > 0; ask = ask[2:] {
		request.Header.Set(ask[0], ask[1])
	}
	response, err := client.Do(request)
	var wrapped *url.Error // with a port that differs from run to run
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return response, err
}

// note notes what the headers say.
func (q *Sent) note(r *http.Response) {
	q.Status, q.Replica = r.StatusCode, r.Header.Get("x-replica")
	q.Attempts, _ = strconv.Atoi(r.Header.Get(attemptsHeader))
	if choices := strings.Trim(r.Header.Get(choicesHeader), `"`); choices != "" && choices != "-" {
		q.Choices = strings.Split(choices, ",")
	}
}

// read reads a response to its end; one that says that it is whole must be.
func (t *Traffic) read(q *Sent, r *http.Response) error {
	if q.Form.Stream {
		t.streaming.Add(1)
		defer t.streaming.Add(-1)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || q.Form.Tokens == 0 {
		return err
	}
	return q.Form.whole(text)
}
