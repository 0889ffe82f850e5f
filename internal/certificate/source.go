package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/internal/config/watch"
)

// interval is the time between two readings of the files: a replaced certificate
// is in use after two of them.
const interval = time.Second

// Source is the TLS of one listener, always that of the last good files.
type Source struct {
	files   Files
	seen    []byte // what current was read from, for Run
	current atomic.Pointer[served]
}

// served is what handshakes use until the files change.
type served struct {
	config   *tls.Config
	notAfter time.Time
}

// Open reads the files. A certificate that has expired is taken: it may be
// replaced while we serve, and the caller can tell by [Source.NotAfter].
func Open(files Files) (*Source, error) {
	bundle, err := files.read()
	if err != nil {
		return nil, err
	}
	id, err := files.parse(bundle)
	if err != nil {
		return nil, err
	}
	s := &Source{files: files, seen: bundle}
	s.current.Store(files.serve(id))
	return s, nil
}

// NotAfter is when the certificate in use expires, or one of its chain.
func (s *Source) NotAfter() time.Time { return s.current.Load().notAfter }

// Expiry is NotAfter in seconds since 1970, as metrics have it.
func (s *Source) Expiry() float64 { return float64(s.NotAfter().Unix()) }

// Config returns the TLS configuration of a listener that speaks the protocols
// ("h2", "http/1.1"), in order of preference. Each new connection is given what
// the files say then; those that are open stay as they are.
func (s *Source) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := s.current.Load().config.Clone()
			c.NextProtos = protocols
			return c, nil
		},
	}
}

// serve makes the configuration of an identity.
func (f Files) serve(id *identity) *served {
	c := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{id.pair},
		// A resumed session would not be verified against an authority that has
		// been replaced since. Envoy's connections are few and long.
		SessionTicketsDisabled: true,
	}
	if f.ClientCA != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = x509.NewCertPool()
		for _, a := range id.authorities {
			c.ClientCAs.AddCert(a)
		}
	}
	if len(f.ClientNames) > 0 {
		c.VerifyConnection = func(state tls.ConnectionState) error { return f.allow(state.PeerCertificates[0]) }
	}
	return &served{config: c, notAfter: id.notAfter()}
}

// Run follows the files until ctx ends and then returns the context's error. It
// reports each change once, one call at a time: nil when it is in use, otherwise
// why it is not; then the last good files stay in use.
func (s *Source) Run(ctx context.Context, report func(error)) error {
	file := watch.File{Path: s.files.Cert, Interval: interval, Read: func(string) ([]byte, error) { return s.files.read() }}
	return file.Run(ctx, s.seen, func(e watch.Event) {
		report(s.take(e, time.Now()))
	})
}

// take puts what was read into use.
func (s *Source) take(e watch.Event, now time.Time) error {
	if e.Err != nil {
		return e.Err
	}
	id, err := s.files.parse(e.Data)
	if err != nil {
		return err
	}
	if now.After(id.notAfter()) {
		return fmt.Errorf("certificate %s: expired on %s", s.files.Cert, date(id.notAfter()))
	}
	s.current.Store(s.files.serve(id))
	return nil
}

// date is how moments look in messages.
func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
