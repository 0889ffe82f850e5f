package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/warmpath/warmpath/internal/testenv/authority"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup writes the files of a server whose clients ca signs.
func setup(t *testing.T, ca *authority.Authority, names ...string) Files {
	t.Helper()
	dir := t.TempDir()
	cert, key := ca.Issue(t, nil, "warmpath").Write(t, dir, "server")
	authority.Replace(t, filepath.Join(dir, "ca.pem"), ca.PEM())
	return Files{Cert: cert, Key: key, ClientCA: filepath.Join(dir, "ca.pem"), ClientNames: names}
}

func openSource(t *testing.T, f Files) *Source {
	t.Helper()
	s, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// handshake connects a client and returns what each side says, after a byte has
// gone both ways: with TLS 1.3 a client hears of its refusal no earlier.
func handshake(t *testing.T, serve, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	listener := bufconn.Listen(1 << 16) // buffered: both sides may speak at once
	deadline := time.Now().Add(20 * time.Second)
	done := make(chan error)
	go func() {
		a, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		_ = a.SetDeadline(deadline)
		server := tls.Server(a, serve)
		if err = server.HandshakeContext(t.Context()); err == nil {
			_, err = server.Write([]byte("!"))
		}
		_ = a.Close()
		done <- err
	}()
	b, err := listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	_ = b.SetDeadline(deadline)
	c := tls.Client(b, client)
	_, clientErr = c.Read(make([]byte, 1))
	state = c.ConnectionState()
	_ = b.Close()
	return state, <-done, clientErr
}

func client(ca *authority.Authority, pairs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: ca.Pool(), ServerName: "warmpath", Certificates: pairs, NextProtos: []string{"h2"}}
}

func TestWhoIsLetIn(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	onlyServer := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	tomorrow := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(24 * time.Hour) }
	for _, c := range []struct {
		name    string
		allowed []string
		pair    *authority.Pair
		want    string // of the server's error
	}{
		{name: "signed", pair: new(ca.Issue(t, nil, "envoy"))},
		{name: "allowed DNS name", allowed: []string{"x", "ENVOY"}, pair: new(ca.Issue(t, nil, "other", "envoy"))},
		{name: "allowed URI", allowed: []string{"spiffe://a/envoy"}, pair: new(ca.Issue(t, nil, "spiffe://a/envoy"))},
		{name: "no certificate", want: "didn't provide a certificate"},
		{name: "another authority", pair: new(other.Issue(t, nil, "envoy")), want: "unknown authority"},
		{name: "expired", pair: new(ca.Issue(t, authority.Expired, "envoy")), want: "expired"},
		{name: "not yet valid", pair: new(ca.Issue(t, tomorrow, "envoy")), want: "not yet valid"},
		{name: "for servers", pair: new(ca.Issue(t, onlyServer, "envoy")), want: "usage"},
		{name: "another name", allowed: []string{"envoy"}, pair: new(ca.Issue(t, nil, "envoy.example", "spiffe://a/envoy")), want: `is for ["envoy.example" "spiffe://a/envoy"], want one of ["envoy"]`},
		{name: "URI in another case", allowed: []string{"spiffe://a/envoy"}, pair: new(ca.Issue(t, nil, "spiffe://a/Envoy")), want: "want one of"},
		{name: "wildcard", allowed: []string{"a.example"}, pair: new(ca.Issue(t, nil, "*.example")), want: "want one of"},
		{name: "common name only", allowed: []string{"common-name"}, pair: new(ca.Issue(t, nil, "envoy")), want: "want one of"},
		{name: "allowed name, another authority", allowed: []string{"envoy"}, pair: new(other.Issue(t, nil, "envoy")), want: "unknown authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openSource(t, setup(t, ca, c.allowed...))
			config := client(ca)
			if c.pair != nil {
				// Regardless of what the server asks for, as an attacker would.
				pair := c.pair.TLS(t)
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				config.MaxVersion = version
				state, err, clientErr := handshake(t, s.Config("h2"), config)
				switch {
				case c.want == "" && (err != nil || clientErr != nil):
					t.Errorf("%s: refused: %v, %v", tls.VersionName(version), err, clientErr)
				case c.want == "" && state.NegotiatedProtocol != "h2":
					t.Errorf("%s: protocol %q", tls.VersionName(version), state.NegotiatedProtocol)
				case c.want != "" && (err == nil || clientErr == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%s: server says %v, client %v, want %q", tls.VersionName(version), err, clientErr, c.want)
				}
			}
		})
	}
}

func TestWithoutClientCA(t *testing.T) {
	ca := authority.New(t, "ca")
	f := setup(t, ca)
	f.ClientCA = ""
	s := openSource(t, f)
	if _, err, clientErr := handshake(t, s.Config("h2"), client(ca)); err != nil || clientErr != nil {
		t.Errorf("refused: %v, %v", err, clientErr)
	}
	old := client(ca)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err, _ := handshake(t, s.Config("h2"), old); err == nil || !strings.Contains(err.Error(), "unsupported versions") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	ca := authority.New(t, "ca")
	otherKey := ca.Issue(t, nil, "x").Key
	for _, c := range []struct {
		name, want string
		change     func(Files)
	}{
		{"no certificate", "server.pem: no such file", func(f Files) { remove(t, f.Cert) }},
		{"no key", "server.key: no such file", func(f Files) { remove(t, f.Key) }},
		{"no authority", "ca.pem: no such file", func(f Files) { remove(t, f.ClientCA) }},
		{"no match", "private key does not match", func(f Files) { authority.Replace(t, f.Key, otherKey) }},
		{"no PEM", "failed to find any PEM data", func(f Files) { authority.Replace(t, f.Cert, []byte("hello")) }},
		{"key is a certificate", "server.key", func(f Files) { authority.Replace(t, f.Key, ca.PEM()) }},
		{"authority without certificates", "ca.pem: no PEM block CERTIFICATE", func(f Files) { authority.Replace(t, f.ClientCA, otherKey) }},
		{"one broken authority", "ca.pem: PEM certificate 2", func(f Files) {
			authority.Replace(t, f.ClientCA, append(ca.PEM(), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...))
		}},
		{"too large", "1048577 bytes, more than the maximum 1048576", func(f Files) { authority.Replace(t, f.ClientCA, make([]byte, maxBytes+1)) }},
	} {
		f := setup(t, ca)
		c.change(f)
		if _, err := Open(f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if problems, _ := Inspect(f, time.Now()); len(problems) != 1 || !strings.Contains(problems[0], c.want) {
			t.Errorf("%s: Inspect says %q, want %q", c.name, problems, c.want)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// rotation is a running source in a bubble, with clients that ca signs.
type rotation struct {
	*Source
	serve   *tls.Config // of the listener, the same all the time
	t       *testing.T
	ca      *authority.Authority
	mu      sync.Mutex
	reports []string
}

func rotate(t *testing.T, play func(*rotation)) {
	synctest.Test(t, func(t *testing.T) {
		ca := authority.New(t, "ca")
		r := &rotation{Source: openSource(t, setup(t, ca, "envoy")), t: t, ca: ca}
		r.serve = r.Config("h2")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx, r.report) }()
		play(r)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func (r *rotation) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, fmt.Sprint(err))
}

// after lets time pass and wants these reports in it, each a part of the text.
func (r *rotation) after(d time.Duration, want ...string) {
	r.t.Helper()
	<-time.After(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := len(r.reports) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(r.reports[i], want[i])
	}
	if !ok {
		r.t.Errorf("reports %q, want %q", r.reports, want)
	}
	r.reports = nil
}

// shows wants a client to be let in, and to be shown the certificate.
func (r *rotation) shows(config *tls.Config, want authority.Pair) {
	r.t.Helper()
	state, err, clientErr := handshake(r.t, r.serve, config)
	if err != nil || clientErr != nil {
		r.t.Errorf("refused: %v, %v", err, clientErr)
		return
	}
	if got := state.PeerCertificates[0]; !got.Equal(want.TLS(r.t).Leaf) {
		r.t.Errorf("certificate %v is shown, want %v", got.SerialNumber, want.TLS(r.t).Leaf.SerialNumber)
	}
}

// Files are taken over without a restart; what is wrong is told once, and the
// last good files stay.
func TestRotationOfThePair(t *testing.T) {
	rotate(t, func(r *rotation) {
		folder := filepath.Dir(r.files.Cert)
		config := client(r.ca, r.ca.Issue(t, nil, "envoy").TLS(t))
		second, third := r.ca.Issue(t, nil, "warmpath"), r.ca.Issue(t, nil, "warmpath")
		r.after(10 * time.Second)
		second.Write(t, folder, "server")
		r.after(2500*time.Millisecond, "<nil>")
		r.shows(config, second)
		if got, want := r.NotAfter(), second.TLS(t).Leaf.NotAfter; !got.Equal(want) {
			t.Errorf("expires %v, want %v", got, want)
		}
		authority.Replace(t, r.files.Cert, third.Cert) // and the key later
		r.after(20*time.Second, "does not match")
		r.shows(config, second)
		authority.Replace(t, r.files.Key, third.Key)
		r.after(5*time.Second, "<nil>")
		r.shows(config, third)
		r.ca.Issue(t, authority.Expired, "warmpath").Write(t, folder, "server")
		r.after(time.Hour, "server.pem: expired on 1999-12-31T23:")
		remove(t, r.files.Key)
		r.after(time.Hour, "server.key: no such file")
		r.shows(config, third)
		third.Write(t, folder, "server") // the one in use
		r.after(5*time.Second, "<nil>")
		r.shows(config, third)
	})
}

// A client whose authority has been replaced is refused from then on, also one
// that has a session to resume.
func TestRotationOfTheAuthority(t *testing.T) {
	rotate(t, func(r *rotation) {
		next := authority.New(t, "next")
		old := client(r.ca, r.ca.Issue(t, nil, "envoy").TLS(t))
		old.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		renewed := client(r.ca, next.Issue(t, nil, "envoy").TLS(t))
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS12, tls.VersionTLS13, tls.VersionTLS13} {
			old.MaxVersion = version
			if state, err, clientErr := handshake(r.t, r.serve, old); err != nil || clientErr != nil || state.DidResume {
				t.Errorf("%s: refused (%v, %v) or resumed (%t)", tls.VersionName(version), err, clientErr, state.DidResume)
			}
		}
		if _, err, _ := handshake(r.t, r.serve, renewed); err == nil {
			t.Error("an authority that is not there yet counts")
		}
		authority.Replace(t, r.files.ClientCA, append(next.PEM(), r.ca.PEM()...)) // as rotations overlap
		r.after(5*time.Second, "<nil>")
		for _, config := range []*tls.Config{old, renewed} {
			if _, err, clientErr := handshake(r.t, r.serve, config); err != nil || clientErr != nil {
				t.Errorf("refused: %v, %v", err, clientErr)
			}
		}
		authority.Replace(t, r.files.ClientCA, next.PEM())
		r.after(5*time.Second, "<nil>")
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			old.MaxVersion = version
			state, err, _ := handshake(r.t, r.serve, old)
			if err == nil || state.DidResume {
				t.Errorf("%s: a client of the replaced authority is let in (resumed: %t)", tls.VersionName(version), state.DidResume)
			}
		}
	})
}
