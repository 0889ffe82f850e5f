package load

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"
)

// Sender sends one request and reads its answer. Implementations are safe for
// concurrent use.
type Sender interface {
	// Send measures from begin on, which may be past. It returns an Outcome in
	// every case; when ctx ends it gives up.
	Send(ctx context.Context, q *Request, begin time.Time) Outcome
}

// Client sends requests as applications do, by net/http. [Wire] costs less.
type Client struct {
	base   string
	header http.Header
	http   *http.Client
}

var _ Sender = (*Client)(nil)

// NewClient returns a client of the gateway at base, an URL without a path, that
// keeps up to connections idle connections; give it the largest number of
// requests in flight. The headers go with every request.
func NewClient(base string, connections int, headers http.Header) *Client {
	return &Client{
		base: strings.TrimSuffix(base, "/"), header: headers,
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
			DisableCompression: true,
		}},
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Send implements [Sender].
func (c *Client) Send(ctx context.Context, q *Request, begin time.Time) Outcome {
	o := Outcome{Prefix: q.Prefix}
	err := c.exchange(ctx, q, begin, &o)
	o.Latency = time.Since(begin)
	if err != nil {
		o.Err = reason(err)
	}
	return o
}

func (c *Client) exchange(ctx context.Context, q *Request, begin time.Time, o *Outcome) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return err
	}
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	if q.Tenant != "" {
		req.Header.Set(tenantHeader, q.Tenant)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readAnswer(resp, q, begin, o)
}
