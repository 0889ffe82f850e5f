package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/warmpath/warmpath/internal/certificate"
	"github.com/warmpath/warmpath/internal/config"
)

// tlsListener is one listener of the tls section.
type tlsListener struct {
	name   string
	config config.ListenerTLS
}

func tlsListeners(c config.TLS) []tlsListener {
	return []tlsListener{{"extProc", c.ExtProc}, {"xds", c.XDS}, {"admin", c.Admin}}
}

// files are the certificate files of a listener, from anywhere.
func files(l config.ListenerTLS, configPath string) certificate.Files {
	l = l.Paths(configPath)
	return certificate.Files{Cert: l.Cert, Key: l.Key, ClientCA: l.ClientCA, ClientNames: l.ClientNames}
}

// openCertificates reads the files of every listener with TLS. What check would
// say of them is logged, once.
func (p *program) openCertificates() error {
	sources := []**certificate.Source{&p.certificates.extProc, &p.certificates.xds, &p.certificates.admin}
	for i, l := range tlsListeners(p.config.TLS) {
		if !l.config.On() {
			continue
		}
		f := files(l.config, p.path)
		source, err := certificate.Open(f)
		if err != nil {
			return usageError{fmt.Errorf("tls.%s: %w", l.name, err)}
		}
		*sources[i] = source
		p.metrics.CertificateErrors.WithLabelValues(l.name)
		p.metrics.TLSRefused.WithLabelValues(l.name)
		p.setExpiry(l.name, source)
		problems, warnings := certificate.Inspect(f, time.Now())
		for _, text := range append(problems, warnings...) {
			p.log.Warn("TLS is not as it should be", "listener", l.name, "problem", text)
		}
	}
	return nil
}

func (p *program) setExpiry(listener string, s *certificate.Source) {
	p.metrics.CertificateExpiry.WithLabelValues(listener).Set(s.Expiry())
}

// followCertificates takes replaced files over while serving.
func (p *program) followCertificates(ctx context.Context, group *errgroup.Group) {
	for i, source := range []*certificate.Source{p.certificates.extProc, p.certificates.xds, p.certificates.admin} {
		if source == nil {
			continue
		}
		name := tlsListeners(p.config.TLS)[i].name
		group.Go(func() error {
			return ended(source.Run(ctx, func(err error) { p.replaced(name, source, err) }))
		})
	}
}

// replaced tells of a change of certificate files.
func (p *program) replaced(listener string, s *certificate.Source, err error) {
	if err != nil {
		p.metrics.CertificateErrors.WithLabelValues(listener).Inc()
		p.log.Error("certificate not taken over, the last good one stays", "listener", listener,
			"expires", s.NotAfter(), "error", err)
		return
	}
	p.setExpiry(listener, s)
	p.log.Info("certificate taken over", "listener", listener, "expires", s.NotAfter())
}

// credentials are those of a gRPC listener; without TLS none.
func (p *program) credentials(listener string, s *certificate.Source) grpc.ServerOption {
	if s == nil {
		return grpc.EmptyServerOption{}
	}
	return grpc.Creds(telling{credentials.NewTLS(s.Config("h2")), p.newRefusals(listener)})
}

// telling are credentials that tell of connections they refuse; gRPC itself says
// nothing of them.
type telling struct {
	credentials.TransportCredentials
	refusals *refusals
}

// ServerHandshake implements credentials.TransportCredentials.
func (t telling) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := t.TransportCredentials.ServerHandshake(c)
	if err != nil {
		t.refusals.add(fmt.Sprintf("%v: %v", c.RemoteAddr(), err))
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (t telling) Clone() credentials.TransportCredentials {
	return telling{t.TransportCredentials.Clone(), t.refusals}
}

// secureAdmin gives the HTTP server its TLS, if it has any.
func (p *program) secureAdmin(server *http.Server) {
	if p.certificates.admin == nil {
		return
	}
	server.TLSConfig = p.certificates.admin.Config("h2", "http/1.1")
	server.ErrorLog = log.New(handshakeErrors{p.newRefusals("admin")}, "", 0)
}

// handshakeErrors takes the lines that net/http logs.
type handshakeErrors struct{ refusals *refusals }

// Write implements io.Writer.
func (h handshakeErrors) Write(line []byte) (int, error) {
	if detail, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "http: TLS handshake error from "); ok {
		h.refusals.add(detail)
	}
	return len(line), nil
}

// refusals counts connections that ended in the handshake. Anybody can cause
// them, so the log gets one line in refusalsInterval, of bounded length.
type refusals struct {
	log   *slog.Logger
	count prometheus.Counter

	mu     sync.Mutex
	logged time.Time // the last line
	silent int       // those since
}

const (
	refusalsInterval = 10 * time.Second
	maxDetail        = 300 // bytes
)

func (p *program) newRefusals(listener string) *refusals {
	return &refusals{log: p.log.With("listener", listener), count: p.metrics.TLSRefused.WithLabelValues(listener)}
}

func (r *refusals) add(detail string) {
	r.count.Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.logged) < refusalsInterval {
		r.silent++
		return
	}
	r.log.Warn("connection refused in the TLS handshake",
		"detail", strings.ToValidUTF8(detail[:min(len(detail), maxDetail)], ""), "others", r.silent)
	r.logged, r.silent = now, 0
}

// exposure says what it means that the admin listener is exposed, as the
// predicate to its address.
const exposure = "can be reached from other machines without a client certificate, and tells the endpoints and their load: keep it on the loopback, or set tls.admin with a clientCA"

// exposed reports whether anybody on the network can read the admin listener.
func exposed(c config.Config) bool {
	return config.Exposed(c.Listen.Admin) && !c.TLS.Admin.Mutual()
}

func (p *program) warnOfExposure() {
	if exposed(p.config) {
		p.log.Warn("listen.admin "+exposure, "address", p.config.Listen.Admin)
	}
}
