package stack

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// Config is the part of warmpath.yaml that users of a stack change.
type Config struct {
	Strategy             string // default RANDOM
	PrefixLength         int    // default 4096; route.AutoPrefixLength
	ConcurrencyThreshold int    // 0 = auto
	OTLPEndpoint         string
	// ExtProc and XDS are where warmpath listens instead of a port; "unix:/path".
	ExtProc, XDS string
	// WithoutXDS leaves warmpath without a control plane.
	WithoutXDS   bool
	DrainTimeout time.Duration // default 10 s
	Extra        string        // further lines of the file
}

// Endpoints makes a membership of healthy endpoints with equal weights.
func Endpoints(addresses ...string) []fleet.Endpoint {
	endpoints := make([]fleet.Endpoint, len(addresses))
	for i, a := range addresses {
		endpoints[i] = fleet.Endpoint{Address: a, Weight: 1}
	}
	return endpoints
}

func (s *Stack) extProc() string { return cmp.Or(s.options.Config.ExtProc, s.ports.extProc) }

// ExtProc is where warmpath serves external processing.
func (s *Stack) ExtProc() string { return s.extProc() }

func (s *Stack) xds() string { return cmp.Or(s.options.Config.XDS, s.ports.xds) }

// XDS is where warmpath serves Envoy's configuration.
func (s *Stack) XDS() string { return s.xds() }

func (s *Stack) configPath() string    { return filepath.Join(s.options.Dir, "warmpath.yaml") }
func (s *Stack) endpointsPath() string { return filepath.Join(s.options.Dir, "endpoints.yaml") }

// WriteEndpoints replaces the membership file. warmpath takes it over shortly.
func (s *Stack) WriteEndpoints(endpoints []fleet.Endpoint) error {
	return replaceFile(s.endpointsPath(), EndpointsText(endpoints))
}

// EndpointsText is the text of a membership file.
func EndpointsText(endpoints []fleet.Endpoint) string {
	var b strings.Builder
	b.WriteString("endpoints:")
	if len(endpoints) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, e := range endpoints {
		fmt.Fprintf(&b, "- {address: %q, weight: %d, state: %s, adapters: [%s]}\n", e.Address, e.Weight, e.State, strings.Join(e.Adapters.All(), ", "))
	}
	return b.String()
}

// WriteRawEndpoints replaces the membership file by any text.
func (s *Stack) WriteRawEndpoints(text string) error { return replaceFile(s.endpointsPath(), text) }

// EndpointsPath is where the membership file is.
func (s *Stack) EndpointsPath() string { return s.endpointsPath() }

// Configure writes a configuration for the next start of warmpath. For one that
// runs see [Stack.SetConfig].
func (s *Stack) Configure(c Config) error { return s.writeConfig(c) }

func (s *Stack) writeConfig(c Config) error {
	s.config = c
	return replaceFile(s.configPath(), s.configText(c))
}

// configText is the text of warmpath.yaml.
func (s *Stack) configText(c Config) string {
	var b strings.Builder
	xds := s.xds()
	if c.WithoutXDS {
		xds = ""
	}
	fmt.Fprintf(&b, "listen: {extProc: %q, xds: %q, admin: %q}\n", s.extProc(), xds, s.ports.admin)
	if c.Strategy == "" {
		c.Strategy = "RANDOM"
	}
	fmt.Fprintf(&b, "routingConfig:\n  routingStrategy: %s\n  prefixAwareRoutingConfig:\n", c.Strategy)
	switch c.PrefixLength {
	case route.AutoPrefixLength:
		b.WriteString("    prefixLength: auto\n")
	case 0:
		b.WriteString("    prefixLength: 4096\n")
	default:
		fmt.Fprintf(&b, "    prefixLength: %d\n", c.PrefixLength)
	}
	threshold := "auto"
	if c.ConcurrencyThreshold > 0 {
		threshold = fmt.Sprint(c.ConcurrencyThreshold)
	}
	fmt.Fprintf(&b, "    concurrencyThreshold: %s\n", threshold)
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 10 * time.Second
	}
	source := cmp.Or(s.membership, "file: "+filepath.Base(s.endpointsPath()))
	fmt.Fprintf(&b, "membership: {%s, drainTimeout: %s}\n", source, c.DrainTimeout)
	if c.OTLPEndpoint != "" {
		fmt.Fprintf(&b, "tracing: {otlpEndpoint: %q}\n", c.OTLPEndpoint)
	}
	if s.options.Inspect > 0 {
		fmt.Fprintf(&b, "inspection: {share: %v}\n", s.options.Inspect)
	}
	if c.Extra != "" {
		b.WriteString(c.Extra + "\n")
	}
	return b.String()
}

// replaceFile puts a new file in the place of the old one in one step, as
// editors and ConfigMap mounts do.
func replaceFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
