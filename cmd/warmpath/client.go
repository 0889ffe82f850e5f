package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/warmpath/warmpath/internal/listen"
)

// maxAnswer bounds what is read of a server's answer: the snapshot of ten thousand
// endpoints has 3 MiB.
const maxAnswer = 64 << 20

// clientOptions say where a running server is, for commands that ask one.
type clientOptions struct {
	from, ca, cert, key, serverName string
	// flag is what gave from, for errors; "" for -from.
	flag string
}

// register adds the flags; from is the default.
func (o *clientOptions) register(flags *flag.FlagSet, from, what string) {
	flags.StringVar(&o.from, "from", from, "admin `address` of "+what+": http://host:port, https://host:port or unix:/path")
	flags.StringVar(&o.ca, "ca", "", "`file` with the authorities that may have signed the server's certificate (default the system's)")
	flags.StringVar(&o.cert, "cert", "", "`file` with a client certificate")
	flags.StringVar(&o.key, "key", "", "`file` with its key")
	flags.StringVar(&o.serverName, "server-name", "", "`name` in the server's certificate (default the host)")
}

// client asks a running server.
type client struct {
	http *http.Client
	base string
}

// open returns a client. An error is one of the options.
func (o clientOptions) open() (*client, error) {
	transport := &http.Transport{ResponseHeaderTimeout: 10 * time.Second, ForceAttemptHTTP2: true}
	c := &client{http: &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: stay}, base: strings.TrimSuffix(o.from, "/")}
	if path, ok := strings.CutPrefix(o.from, listen.UnixPrefix); ok {
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	} else if u, err := url.Parse(o.from); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%s %.80q: want http://host:port, https://host:port or unix:/path", cmp.Or(o.flag, "-from"), o.from)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.serverName}
	if o.ca != "" {
		text, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("-ca %s: no certificate in it", o.ca)
		}
	}
	if o.cert != "" || o.key != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("-cert and -key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = config
	return c, nil
}

// stay follows no redirect: it would take headers with credentials to somebody else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// close lets the connections go.
func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends a request and decodes the JSON of its answer into v.
func (c *client) ask(ctx context.Context, method, path string, body io.Reader, v any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var wrapped *url.Error // which has the whole address in it again
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("ask %s: %w", c.base, err)
	}
	defer answer.Body.Close()
	decoder := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		if decoder.Decode(&problem) != nil || problem.Detail == "" {
			problem.Detail = "is that the admin listener of a warmpath of this version?"
		}
		return fmt.Errorf("ask %s: %s: %s", c.base, statusOf(answer), onTerminal(problem.Detail))
	}
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	return nil
}

// statusOf is the status of an answer in our words: the server's are not for a terminal.
func statusOf(answer *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
}

// onTerminal returns a server's words in a line that does nothing to a terminal.
func onTerminal(words string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, words)
}
