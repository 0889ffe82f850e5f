package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/authority"
)

// secrets are the files of a warmpath and an Envoy that trust each other.
type secrets struct {
	ca     *authority.Authority
	folder string
}

func newSecrets(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{ca: authority.New(t, "ca"), folder: t.TempDir()}
	authority.Replace(t, s.path("ca.pem"), s.ca.PEM())
	s.ca.Issue(t, nil, "warmpath").Write(t, s.folder, "warmpath")
	s.ca.Issue(t, nil, "envoy").Write(t, s.folder, "envoy")
	return s
}

func (s *secrets) path(name string) string { return filepath.Join(s.folder, name) }

// config is the tls section for the listeners.
func (s *secrets) config(listeners ...string) string {
	var b strings.Builder
	b.WriteString("tls:\n")
	for _, l := range listeners {
		fmt.Fprintf(&b, "  %s: {cert: %q, key: %q, clientCA: %q, clientNames: [envoy]}\n", l, s.path("warmpath.pem"), s.path("warmpath.key"), s.path("ca.pem"))
	}
	return b.String()
}

// envoy is Envoy's side, with the files of the names.
func (s *secrets) envoy(t *testing.T, config []byte, ca, cert string) []byte {
	t.Helper()
	tls := envoy.TLS{
		ServerName: "warmpath", CA: s.path(ca + ".pem"), Cert: s.path(cert + ".pem"), Key: s.path(cert + ".key"),
		CASecret: s.path(ca + ".yaml"), CertSecret: s.path(cert + ".yaml"),
	}
	caSecret, certSecret, err := tls.Secrets()
	if err == nil {
		config, err = envoy.WithTLS(config, tls)
	}
	if err != nil {
		t.Error(err)
	}
	authority.Replace(t, tls.CASecret, caSecret)
	authority.Replace(t, tls.CertSecret, certSecret)
	return config
}

// client is that of a program with the certificate, or without one.
func (s *secrets) client(t *testing.T, pairs ...authority.Pair) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: s.ca.Pool(), ServerName: "warmpath", NextProtos: []string{"h2", "http/1.1"}}
	for _, p := range pairs {
		c.Certificates = append(c.Certificates, p.TLS(t))
	}
	return c
}

// listening is an address from the line with which warmpath starts.
func listening(t *testing.T, output, listener string) string {
	t.Helper()
	_, rest, ok := strings.Cut(output, " "+listener+"=")
	address, _, end := strings.Cut(rest, " ")
	if !ok || !end {
		t.Fatalf("no address of %s in %q", listener, output)
	}
	return address
}

// The certificates of examples/tls, replaced under load as its script does it,
// lose no request and end no stream; new connections get the new ones.
func TestMutualTLS(t *testing.T) {
	files := &secrets{folder: t.TempDir()}
	makeCertificates(t, files)
	config := prefixAware(100) // never too much for the home
	config.Extra = files.config("extProc", "xds")
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: config, Bootstrap: func(config []byte) ([]byte, error) {
		return files.envoy(t, config, "ca", "envoy"), nil
	}})
	body := chat(strings.Repeat("Over an encrypted connection. ", 60), "q", true)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	open, _ := holdOpen(t, s, body, 3)

	var sent atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for range 3 {
		load.Go(func() {
			for ctx.Err() == nil {
				if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != home {
					t.Errorf("request %d: at %s (%v), home is %s", sent.Load(), got, err, home)
				}
				sent.Add(1)
			}
		})
	}
	makeCertificates(t, files)
	for _, listener := range []string{"extProc", "xds"} {
		awaitCertificate(t, s, files, listener)
	}
	stop()
	load.Wait()
	decided, err := s.Metric(t.Context(), "warmpath_decisions_total", `strategy="PREFIX_AWARE"`)
	if want := float64(sent.Load() + 3); err != nil || decided != want {
		t.Errorf("%v requests decided on (%v), sent %v", decided, err, want)
	}
	truthAgrees(t, s)
	open.close()
	noMisses(t, s)
	atRest(t, s)
}

// All files of both sides are replaced, the authority too, while warmpath is away:
// the Envoy that runs finds back to it by the files alone.
func TestEnvoyFollowsItsFiles(t *testing.T) {
	for name, layout := range map[string]struct{ first, next string }{
		"renamed one by one":         {"", ""},
		"swapped as Kubernetes does": {"v1", "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			files := &secrets{folder: t.TempDir()}
			replace := func(version string) {
				t.Helper()
				if err := os.Remove(files.path("ca.key")); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				makeCertificates(t, &secrets{folder: files.path(version)})
				if version != "" {
					mount(t, files.folder, version)
				}
			}
			replace(layout.first)
			config := prefixAware(0)
			config.Extra = files.config("extProc", "xds")
			s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: config, Bootstrap: func(config []byte) ([]byte, error) {
				return files.envoy(t, config, "ca", "envoy"), nil
			}})
			s.Warmpath.Kill()
			replace(layout.next)
			if err := s.StartWarmpath(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.AwaitRouting(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitDecision(t, s, chat(strings.Repeat("With other certificates. ", 60), "q", true))
		})
	}
}

// mount makes the files of folder/version those of folder, as a mounted secret of
// Kubernetes has them: links through ..data, which is swapped.
func mount(t *testing.T, folder, version string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(folder, version))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink("..data/"+e.Name(), filepath.Join(folder, e.Name())); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(version, filepath.Join(folder, "..data.new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(folder, "..data.new"), filepath.Join(folder, "..data")); err != nil {
		t.Fatal(err)
	}
}

// awaitDecision sends requests until warmpath decides on one: Envoy has to find it
// healthy first.
func awaitDecision(t *testing.T, s *stack.Stack, body []byte) {
	t.Helper()
	if err := s.Await(t.Context(), "Envoy to ask warmpath", func() error {
		before, err := s.Metric(t.Context(), "warmpath_decisions_total")
		if err != nil {
			return err
		}
		if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
			t.Errorf("while Envoy does not ask warmpath: %v", err)
		}
		after, err := s.Metric(t.Context(), "warmpath_decisions_total")
		if err == nil && after == before {
			err = errors.New("Envoy chose by itself")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// makeCertificates runs the script of examples/tls.
func makeCertificates(t *testing.T, files *secrets) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../../examples/tls/certificates.sh", files.folder).CombinedOutput(); err != nil {
		t.Fatalf("certificates.sh: %v\n%s", err, out)
	}
}

// awaitCertificate waits until a listener shows the certificate that is in the
// files.
func awaitCertificate(t *testing.T, s *stack.Stack, files *secrets, listener string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.path("envoy.pem"), files.path("envoy.key"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := tls.LoadX509KeyPair(files.path("warmpath.pem"), files.path("warmpath.key"))
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(files.path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	leaf, client := shown.Leaf, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "warmpath", NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair}}
	client.RootCAs.AppendCertsFromPEM(authorities)
	if err := s.Await(t.Context(), "the new certificate of "+listener, func() error {
		connection, err := tls.Dial("tcp", listening(t, s.Warmpath.Output(), listener), client)
		if err != nil {
			return err
		}
		defer connection.Close()
		if got := connection.ConnectionState().PeerCertificates[0]; !got.Equal(leaf) {
			return fmt.Errorf("certificate %v, want %v", got.SerialNumber, leaf.SerialNumber)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// An Envoy that warmpath does not let in serves all requests by its own choice,
// and so does one that does not trust warmpath.
func TestRefusedEnvoyServesByItself(t *testing.T) {
	files := newSecrets(t)
	other := authority.New(t, "other")
	authority.Replace(t, files.path("other-ca.pem"), other.PEM())
	issue := func(name string, p authority.Pair) { p.Write(t, files.folder, name) }
	issue("stranger", other.Issue(t, nil, "envoy"))
	issue("misnamed", files.ca.Issue(t, nil, "gateway"))
	issue("expired", files.ca.Issue(t, authority.Expired, "envoy"))
	for _, c := range []struct {
		name     string
		ca, cert string
		change   func([]byte) []byte
		want     string // in warmpath's log
	}{
		{"no certificate", "ca", "envoy", withoutLines("tls_certificate_sds_secret_configs", "- {name: envoy, sds_config"), "didn't provide a certificate"},
		{"another authority", "ca", "stranger", nil, "unknown authority"},
		{"another name", "ca", "misnamed", nil, "want one of"},
		{"expired", "ca", "expired", nil, "expired"},
		{"warmpath is another authority's", "other-ca", "envoy", nil, "unknown certificate authority"},
		{"warmpath has another name", "ca", "envoy", func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`exact: "warmpath"`), []byte(`exact: "other"`))
		}, ""},
		{"plain text", "ca", "envoy", plainText, "first record does not look like a TLS handshake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := prefixAware(0)
			config.Extra = files.config("extProc", "xds")
			s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: config, Bootstrap: func(config []byte) ([]byte, error) {
				// Only the connection for decisions: Envoy needs the endpoints to serve.
				xds := []byte("  - name: warmpath_xds\n")
				first, _, _ := bytes.Cut(files.envoy(t, config, c.ca, c.cert), xds)
				_, second, _ := bytes.Cut(files.envoy(t, config, "ca", "envoy"), xds)
				if c.change != nil {
					changed := c.change(first)
					if bytes.Equal(changed, first) {
						t.Error("the change of Envoy's configuration changes nothing")
					}
					first = changed
				}
				return bytes.Join([][]byte{first, second}, xds), nil
			}})
			body := chat(strings.Repeat("A refused connection. ", 80), "q", true)
			for i := range 20 {
				if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			if n, err := s.Metric(t.Context(), "warmpath_decisions_total"); err != nil || n != 0 {
				t.Errorf("%v requests were decided on (%v)", n, err)
			}
			if n, err := s.Metric(t.Context(), "warmpath_tls_refused_total", `listener="extProc"`); err != nil || n == 0 {
				t.Errorf("%v connections were refused (%v)", n, err)
			}
			if n, err := s.Metric(t.Context(), "warmpath_tls_refused_total", `listener="xds"`); err != nil || n != 0 {
				t.Errorf("%v connections of the control plane were refused (%v)", n, err)
			}
			if out := s.Warmpath.Output(); !strings.Contains(out, c.want) || strings.Count(out, "refused in the TLS handshake") > 10 {
				t.Errorf("the log does not say %q once in a while", c.want)
			}
		})
	}
}

// withoutLines takes the lines out that contain one of the texts.
func withoutLines(texts ...string) func([]byte) []byte {
	return func(config []byte) []byte {
		var kept []byte
		for line := range bytes.Lines(config) {
			if !slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(line, []byte(text)) }) {
				kept = append(kept, line...)
			}
		}
		return kept
	}
}

// plainText takes the TLS from the first cluster that has it.
func plainText(config []byte) []byte {
	before, rest, _ := bytes.Cut(config, []byte("    transport_socket:\n"))
	_, after, _ := bytes.Cut(rest, []byte("    load_assignment:\n"))
	return bytes.Join([][]byte{before, after}, []byte("    load_assignment:\n"))
}

// A port with TLS answers nothing to a client that does not speak it.
func TestPlainClientIsRefused(t *testing.T) {
	files := newSecrets(t)
	p := startProgram(t, files.config("extProc", "xds", "admin"))
	for name, l := range map[string]net.Listener{"extProc": p.listeners.extProc, "xds": p.listeners.xds, "admin": p.listeners.admin} {
		connection, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Write([]byte("GET /status HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4096)
		n, _ := connection.Read(answer)
		if text := string(answer[:n]); strings.Contains(text, "200 OK") || strings.Contains(text, "endpoints") {
			t.Errorf("%s answers %q", name, text)
		}
		_ = connection.Close()
		p.awaitMetric(t, `warmpath_tls_refused_total{listener="`+name+`"} 1`)
	}
}
