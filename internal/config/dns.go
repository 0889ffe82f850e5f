package config

import (
	"net/netip"
	"regexp"
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// DNS is a membership that a name server answers.
type DNS struct {
	// Name is what is asked for; without a dot at its end the search list of
	// resolv.conf applies.
	Name string `yaml:"name"`
	// Type is the kind of record.
	Type DNSType `yaml:"type"`
	// Port is that of every endpoint, 1 to 65535; 0 with SRV, whose records have one.
	Port int `yaml:"port,omitempty"`
	// Family says which addresses count.
	Family DNSFamily `yaml:"family"`
	// Interval is the time between two queries.
	Interval time.Duration `yaml:"interval"`
	// Server is the ip:port of the name server to ask; empty asks those of
	// resolv.conf.
	Server string `yaml:"server"`
	// TCP asks over TCP only, for servers that shorten their answers over UDP.
	TCP bool `yaml:"tcp"`
}

// DNSType is a kind of record.
type DNSType string

// DNSFamily is a version of the Internet protocol.
type DNSFamily string

// Types and families.
const (
	DNSAddress DNSType = "A" // AAAA too
	DNSService DNSType = "SRV"

	DNSAny  DNSFamily = "any"
	DNSIPv4 DNSFamily = "ipv4"
	DNSIPv6 DNSFamily = "ipv6"
)

func defaultDNS() *DNS {
	return &DNS{Type: DNSAddress, Family: DNSAny, Interval: 5 * time.Second}
}

func (d *DNS) decode(v strict.Value) {
	hasName, hasPort := false, false
	isMapping := v.Fields(
		strict.Field{Name: "name", Decode: func(v strict.Value) {
			hasName = true
			decodeDNSName(v, &d.Name)
		}},
		strict.Field{Name: "type", Decode: strict.Enum(&d.Type, DNSAddress, DNSService)},
		strict.Field{Name: "port", Decode: func(v strict.Value) {
			hasPort = true
			strict.Int(&d.Port, 1, 65535)(v)
		}},
		strict.Field{Name: "family", Decode: strict.Enum(&d.Family, DNSAny, DNSIPv4, DNSIPv6)},
		strict.Field{Name: "interval", Decode: strict.Duration(&d.Interval, 100*time.Millisecond, time.Hour)},
		strict.Field{Name: "server", Decode: func(v strict.Value) { decodeNameServer(v, &d.Server) }},
		strict.Field{Name: "tcp", Decode: strict.Bool(&d.TCP)},
	)
	if !isMapping {
		return
	}
	if !hasName {
		v.Report("name", "the name to ask for is missing")
	}
	switch {
	case d.Type == DNSAddress && !hasPort:
		v.Report("port", "the port of the endpoints is missing (want 1..65535): addresses have none")
	case d.Type == DNSService && hasPort:
		v.Report("port", "has no effect: SRV records have ports of their own")
	}
}

var dnsName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?$`)

// maxDNSName is the longest name there can be, in bytes, with the dot at its end.
const maxDNSName = 254

func decodeDNSName(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "a name to ask for (quote it)")
	if !ok {
		return
	}
	if _, err := netip.ParseAddr(s); err == nil {
		v.Reject("is an address, which no name server is needed for (want static)")
		return
	}
	if len(s) > maxDNSName || !dnsName.MatchString(s) {
		v.Reject("is not a DNS name (want at most %d letters, digits, '-', '_' and dots)", maxDNSName)
		return
	}
	*dst = s
}

func decodeNameServer(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", `the ip:port of a name server or ""`)
	if !ok || s == "" {
		return
	}
	if address, err := netip.ParseAddrPort(s); err != nil || address.Port() == 0 {
		v.Reject(`is not the ip:port of a name server (as in 10.96.0.10:53), nor ""`)
		return
	}
	*dst = s
}
