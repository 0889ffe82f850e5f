package config

import (
	"regexp"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// TLS secures the listeners, each with files of its own.
type TLS struct {
	ExtProc ListenerTLS `yaml:"extProc"`
	XDS     ListenerTLS `yaml:"xds"`
	Admin   ListenerTLS `yaml:"admin"`
}

// ListenerTLS is the TLS of one listener; without Cert it speaks plain text. The
// paths are as written: see [ListenerTLS.Paths].
type ListenerTLS struct {
	// Cert and Key are the server's certificate with its chain, and its key.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ClientCA holds the authorities that sign the certificates of clients, which
	// must show one then; empty asks for none.
	ClientCA string `yaml:"clientCA"`
	// ClientNames are the DNS names and URIs of which a client's certificate must
	// have one; none takes all that ClientCA vouches for. At most MaxClientNames.
	ClientNames []string `yaml:"clientNames,flow"`
}

// MaxClientNames bounds ListenerTLS.ClientNames.
const MaxClientNames = 100

// On reports whether the listener speaks TLS.
func (l ListenerTLS) On() bool { return l.Cert != "" }

// Mutual reports whether clients must show a certificate.
func (l ListenerTLS) Mutual() bool { return l.ClientCA != "" }

// Paths returns a copy whose files are relative to the folder of the
// configuration file no longer.
func (l ListenerTLS) Paths(configPath string) ListenerTLS {
	l.Cert, l.Key, l.ClientCA = beside(configPath, l.Cert), beside(configPath, l.Key), beside(configPath, l.ClientCA)
	return l
}

func (t *TLS) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "extProc", Decode: t.ExtProc.decode},
		strict.Field{Name: "xds", Decode: t.XDS.decode},
		strict.Field{Name: "admin", Decode: t.Admin.decode},
	)
}

func (l *ListenerTLS) decode(v strict.Value) {
	isMapping := v.Fields(
		strict.Field{Name: "cert", Decode: strict.Path(&l.Cert)},
		strict.Field{Name: "key", Decode: strict.Path(&l.Key)},
		strict.Field{Name: "clientCA", Decode: strict.Path(&l.ClientCA)},
		strict.Field{Name: "clientNames", Decode: l.decodeNames},
	)
	switch {
	case !isMapping:
	case l.Cert == "" && l.Key != "":
		v.Report("cert", "the certificate of key is missing")
	case l.Cert != "" && l.Key == "":
		v.Report("key", "the key of cert is missing")
	case l.Cert == "" && l.ClientCA != "":
		v.Report("cert", "clientCA has no effect without cert and key")
	}
	if isMapping && l.ClientCA == "" && len(l.ClientNames) > 0 {
		v.Report("clientCA", "clientNames has no effect without the authority that vouches for them")
	}
}

// clientName is a DNS name without wildcards, or a URI such as that of SPIFFE.
var clientName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?|[A-Za-z][A-Za-z0-9+.-]{0,30}://[!-~]{1,1000})$`)

func (l *ListenerTLS) decodeNames(v strict.Value) {
	l.ClientNames = nil
	v.Each(func(i int, item strict.Value) {
		name, ok := item.Scalar("!!str", "the name of a client (quote it)")
		switch {
		case !ok:
		case !clientName.MatchString(name):
			item.Reject("is not the name of a client (want a DNS name without *, or a URI such as spiffe://domain/envoy)")
		case i >= MaxClientNames:
			item.Reject("is name %d (want at most %d)", i+1, MaxClientNames)
		default:
			l.ClientNames = append(l.ClientNames, name)
		}
	})
}
