package certificate

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"time"
)

// soon is how long before its end a certificate is warned of.
const soon = 24 * time.Hour

// othersRead is the permission of everybody else on the machine to read a file.
const othersRead = 0o004

// Inspect reads the files as they are now. Problems are what keeps the listener
// from serving its clients, or its key from being a secret; warnings what will
// soon.
func Inspect(files Files, now time.Time) (problems, warnings []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if info, err := os.Stat(files.Key); err == nil && info.Mode().Perm()&othersRead != 0 {
		problem("key %s: everybody on this machine can read it (mode %04o, want 0600 or 0640)", files.Key, info.Mode().Perm())
	}
	bundle, err := files.read()
	if err != nil {
		problem("%v", err)
		return problems, warnings
	}
	id, err := files.parse(bundle)
	if err != nil {
		problem("%v", err)
		return problems, warnings
	}
	if leaf := id.chain[0]; !forServers(leaf) {
		problem("certificate %s: its extended key usage does not allow servers", files.Cert)
	}
	for what, certificates := range map[string][]*x509.Certificate{
		"certificate " + files.Cert:   id.chain,
		"client CA " + files.ClientCA: id.authorities,
	} {
		p, w := validity(what, certificates, now)
		problems, warnings = append(problems, p...), append(warnings, w...)
	}
	slices.Sort(problems)
	slices.Sort(warnings)
	return problems, warnings
}

// forServers tells whether clients may take the certificate for a server's.
func forServers(c *x509.Certificate) bool {
	return len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0 ||
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// validity judges the dates of a file's certificates.
func validity(what string, certificates []*x509.Certificate, now time.Time) (problems, warnings []string) {
	for i, c := range certificates {
		which := what
		if len(certificates) > 1 {
			which = fmt.Sprintf("%s, number %d", what, i+1)
		}
		switch {
		case now.After(c.NotAfter):
			problems = append(problems, fmt.Sprintf("%s: expired on %s", which, date(c.NotAfter)))
		case now.Before(c.NotBefore):
			problems = append(problems, fmt.Sprintf("%s: not valid before %s", which, date(c.NotBefore)))
		case c.NotAfter.Sub(now) < soon:
			warnings = append(warnings, fmt.Sprintf("%s: expires on %s", which, date(c.NotAfter)))
		}
	}
	return problems, warnings
}
