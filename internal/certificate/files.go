// Package certificate serves TLS from files that may be replaced while it serves:
// the certificate and key of a listener, and the authority that signs its clients.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config/watch"
)

// Files say where one listener's TLS comes from.
type Files struct {
	// Cert is a PEM file: the server's certificate first, then its intermediates.
	// Key is the PEM file of its private key, not encrypted.
	Cert, Key string
	// ClientCA is a PEM file of the authorities for clients. With it every client
	// must show a certificate that one of them signed; empty asks for none.
	ClientCA string
	// ClientNames are the DNS names and URIs of which a client's certificate must
	// have one; none takes every certificate that ClientCA vouches for.
	ClientNames []string
}

// maxBytes bounds each file; the bundle of all public authorities has a quarter
// of it.
const maxBytes = 1 << 20

// contents is what the files hold, read together so that a change of two of them
// is one change.
type contents struct{ Cert, Key, ClientCA []byte }

// read returns the contents as one text, for the watcher to compare.
func (f Files) read() ([]byte, error) {
	var c contents
	for _, file := range []struct {
		path string
		dst  *[]byte
	}{{f.Cert, &c.Cert}, {f.Key, &c.Key}, {f.ClientCA, &c.ClientCA}} {
		if file.path == "" {
			continue
		}
		data, err := watch.ReadFile(file.path)
		if err != nil {
			return nil, err
		}
		if len(data) > maxBytes {
			return nil, fmt.Errorf("read file: %s has %d bytes, more than the maximum %d", file.path, len(data), maxBytes)
		}
		*file.dst = data
	}
	return json.Marshal(c)
}

// identity is what the files say, checked.
type identity struct {
	pair        tls.Certificate
	chain       []*x509.Certificate // of the pair, the leaf first
	authorities []*x509.Certificate
}

// parse reads what read returned. Errors name the file.
func (f Files) parse(bundle []byte) (*identity, error) {
	var c contents
	if err := json.Unmarshal(bundle, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Cert, err)
	}
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	id := &identity{pair: pair}
	if id.chain, err = parsePEM(c.Cert); err != nil {
		return nil, fmt.Errorf("certificate %s: %w", f.Cert, err)
	}
	if f.ClientCA == "" {
		return id, nil
	}
	if id.authorities, err = parsePEM(c.ClientCA); err != nil {
		return nil, fmt.Errorf("client CA %s: %w", f.ClientCA, err)
	}
	return id, nil
}

// parsePEM returns the certificates of a PEM text, at least one. One that cannot
// be read is an error: left out, its clients would be refused without a word.
func parsePEM(text []byte) (certificates []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM certificate %d: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, c)
	}
	if len(certificates) == 0 {
		return nil, errors.New("no PEM block CERTIFICATE in it")
	}
	return certificates, nil
}

// notAfter is when the first certificate of the chain expires.
func (id *identity) notAfter() time.Time {
	return slices.MinFunc(id.chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// allow reports why a verified client is not one of the names, nil if it is. The
// common name does not count: authorities do not vouch for it as for the others.
func (f Files) allow(client *x509.Certificate) error {
	has := slices.Clone(client.DNSNames)
	for _, u := range client.URIs {
		has = append(has, u.String())
	}
	for _, want := range f.ClientNames {
		if slices.ContainsFunc(has, func(name string) bool { return sameName(name, want) }) {
			return nil
		}
	}
	return fmt.Errorf("the client's certificate is for %.200q, want one of %.200q", has, f.ClientNames)
}

// sameName compares DNS names without, URIs with regard to case.
func sameName(a, b string) bool {
	if isURI(a) || isURI(b) {
		return a == b
	}
	return strings.EqualFold(a, b)
}

// isURI tells the URIs among client names from the DNS names.
func isURI(name string) bool {
	u, err := url.Parse(name)
	return err == nil && u.Scheme != "" && u.Host != ""
}
