package certificate

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/testenv/authority"
)

func TestInspect(t *testing.T) {
	ca, next := authority.New(t, "ca"), authority.New(t, "next")
	now := time.Now()
	until := func(d time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = now.Add(d) }
	}
	day := 24 * time.Hour
	for _, c := range []struct {
		name               string
		change             func(*x509.Certificate)
		keyMode            os.FileMode
		at                 time.Time
		problems, warnings []string // parts of them, without the folder
	}{
		{name: "good", keyMode: 0o600, at: now},
		{name: "key for its group", keyMode: 0o640, at: now},
		{name: "key for all", keyMode: 0o644, at: now, problems: []string{"key server.key: everybody on this machine can read it (mode 0644, want 0600 or 0640)"}},
		{name: "a day and a minute left", keyMode: 0o600, change: until(day + time.Minute), at: now},
		{name: "less than a day left", keyMode: 0o600, change: until(day - time.Minute), at: now, warnings: []string{"certificate server.pem: expires on " + date(now.Add(day-time.Minute))}},
		{name: "expired", keyMode: 0o600, change: until(-time.Minute), at: now, problems: []string{"certificate server.pem: expired on " + date(now.Add(-time.Minute))}},
		{name: "not yet", keyMode: 0o600, change: func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }, at: now, problems: []string{"certificate server.pem: not valid before " + date(now.Add(time.Hour))}},
		{name: "for clients only", keyMode: 0o600, change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, at: now, problems: []string{"extended key usage does not allow servers"}},
		{name: "for nothing in particular", keyMode: 0o600, change: func(c *x509.Certificate) { c.ExtKeyUsage = nil }, at: now},
		{name: "authorities too", keyMode: 0o600, change: until(20 * 365 * day), at: now.Add(11 * 365 * day), problems: []string{"client CA ca.pem, number 1: expired on", "client CA ca.pem, number 2: expired on"}},
	} {
		f := setup(t, ca)
		ca.Issue(t, c.change, "warmpath").Write(t, filepath.Dir(f.Cert), "server")
		authority.Replace(t, f.ClientCA, append(ca.PEM(), next.PEM()...))
		if err := os.Chmod(f.Key, c.keyMode); err != nil {
			t.Fatal(err)
		}
		problems, warnings := Inspect(f, c.at)
		folder := filepath.Dir(f.Cert) + "/"
		for _, both := range []struct{ got, want []string }{{problems, c.problems}, {warnings, c.warnings}} {
			if !slices.EqualFunc(both.got, both.want, func(got, want string) bool {
				return strings.Contains(strings.ReplaceAll(got, folder, ""), want)
			}) {
				t.Errorf("%s: %q, want %q", c.name, both.got, both.want)
			}
		}
	}
}

// Whatever is in the files, they are read or refused, with the file's name and
// without a word of the key.
func FuzzParse(f *testing.F) {
	ca := authority.New(f, "ca")
	pair := ca.Issue(f, nil, "warmpath")
	f.Add(pair.Cert, pair.Key, ca.PEM())
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), pair.Key, []byte(nil))
	f.Fuzz(func(t *testing.T, cert, key, authorities []byte) {
		dir := t.TempDir()
		files := Files{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca")}
		authority.Replace(t, files.Cert, cert)
		authority.Replace(t, files.Key, key)
		authority.Replace(t, files.ClientCA, authorities)
		s, err := Open(files)
		if err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v names no file", err)
			}
			for line := range bytes.Lines(key) {
				if len(line) > 16 && strings.Contains(err.Error(), string(bytes.TrimSpace(line))) {
					t.Error("the error holds a line of the private key")
				}
			}
			return
		}
		if s.NotAfter().IsZero() || s.current.Load().config.ClientCAs == nil {
			t.Error("accepted without a date or without authorities")
		}
	})
}
