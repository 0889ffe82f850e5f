package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config/watch"
)

const (
	// maxToken bounds a token file; real tokens have about 1 KiB.
	maxToken = 64 << 10
	// maxRetryAfter bounds what a server may ask for.
	maxRetryAfter = 30 * time.Second
)

// client speaks to one API server. It is not for several goroutines.
type client struct {
	options   Options
	times     times
	slices    *url.URL // the collection of EndpointSlices of the namespace
	transport *http.Transport
	ca        []byte // what transport trusts
}

func newClient(o Options, t times) (*client, error) {
	server, err := url.Parse(o.Server)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, fmt.Errorf("API server %q: want https://host:port", o.Server)
	}
	if server.Scheme == "http" && o.TokenFile != "" {
		return nil, fmt.Errorf("API server %q: a token is not sent over plain http, want https", o.Server)
	}
	return &client{
		options: o, times: t,
		slices: server.JoinPath("apis/discovery.k8s.io/v1/namespaces", o.Namespace, "endpointslices"),
	}, nil
}

func (c *client) close() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}

// get sends a request and returns its answer if that is 200; the caller closes
// its body.
func (c *client) get(ctx context.Context, query url.Values) (*http.Response, error) {
	if err := c.trust(); err != nil {
		return nil, err
	}
	query.Set("labelSelector", "kubernetes.io/service-name="+c.options.Service)
	at := *c.slices
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "warmpath")
	if c.options.TokenFile != "" {
		token, err := readToken(c.options.TokenFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The transport alone follows no redirect, with which a token would go along.
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", c.slices.Host, cause(ctx, err))
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}

// trust makes a transport for the authorities of the file, anew when these have
// been replaced.
func (c *client) trust() error {
	var ca []byte
	if c.options.CAFile != "" {
		var err error
		if ca, err = watch.ReadFile(c.options.CAFile); err != nil {
			return fmt.Errorf("authorities of the API server: %w", err)
		}
	}
	if c.transport != nil && bytes.Equal(ca, c.ca) {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.options.CAFile != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return fmt.Errorf("authorities of the API server: %s holds no certificate in PEM", c.options.CAFile)
		}
	}
	c.close()
	c.ca = ca
	c.transport = &http.Transport{
		// No proxy: the environment must not lead the token elsewhere.
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    c.times.grace,
		ResponseHeaderTimeout:  c.times.grace,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // the bounds are those of what is sent
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: c.times.ping, PingTimeout: c.times.ping},
	}
	return nil
}

// readToken returns the token of a file. Errors do not contain it.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxToken {
		return "", fmt.Errorf("token file %s: %d bytes, want at most %d", path, info.Size(), maxToken)
	}
	data, err := watch.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token file %s: %d bytes that are not one word of printable ASCII", path, len(data))
	}
	return token, nil
}

// cause is why a context ended, if that is why err happened.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// refusedError is an answer that is not 200.
type refusedError struct {
	status int
	text   string
	after  time.Duration
}

func (e *refusedError) Error() string { return e.text }

// Is makes 410 [errExpired].
func (e *refusedError) Is(target error) bool {
	return target == errExpired && e.status == http.StatusGone
}

// errExpired says that a version is too old to go on from.
var errExpired = errors.New("the resourceVersion has expired")

func retryAfter(err error) time.Duration {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.after
}

// refusal words an answer, with what to do about it where that is known.
func refusal(r *http.Response) error {
	e := &refusedError{status: r.StatusCode}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.after = min(time.Duration(min(seconds, 3600))*time.Second, maxRetryAfter)
	}
	e.text = fmt.Sprintf("API server answers %d%s", r.StatusCode, statusMessage(r.Body))
	switch r.StatusCode {
	case http.StatusUnauthorized:
		e.text += "; it does not take the token: has it expired, is it of this cluster?"
	case http.StatusForbidden:
		e.text += "; the ServiceAccount needs get, list and watch on endpointslices: see examples/kubernetes/rbac.yaml"
	}
	return e
}
