package config

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/internal/fleet"
)

// YAML returns the whole configuration, defaults included, in the format that
// [Decode] reads: decoding it gives an equal Config.
func (c Config) YAML() []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		panic(fmt.Sprintf("config: encode %T: %v", c, err)) // plain values always encode
	}
	return b.Bytes()
}

// String is the configuration as YAML text.
func (c Config) String() string { return string(c.YAML()) }

// MarshalYAML writes auto or the number.
func (t Threshold) MarshalYAML() (any, error) {
	if t == AutoThreshold {
		return "auto", nil
	}
	return int(t), nil
}

// MarshalYAML writes auto or the number.
func (l Length) MarshalYAML() (any, error) {
	if l == AutoLength {
		return "auto", nil
	}
	return int(l), nil
}

// MarshalYAML writes four octal digits.
func (m SocketMode) MarshalYAML() (any, error) { return fmt.Sprintf("%04o", uint32(m)), nil }

// MarshalYAML writes the one source there is.
func (m Membership) MarshalYAML() (any, error) {
	if m.File != "" {
		return struct {
			File         string `yaml:"file"`
			DrainTimeout string `yaml:"drainTimeout"`
		}{m.File, m.DrainTimeout.String()}, nil
	}
	if m.Kubernetes.Service != "" {
		return struct {
			Kubernetes   Kubernetes `yaml:"kubernetes"`
			DrainTimeout string     `yaml:"drainTimeout"`
		}{m.Kubernetes, m.DrainTimeout.String()}, nil
	}
	entries := make([]entry, len(m.Static))
	for i, e := range m.Static {
		entries[i] = newEntry(e)
	}
	return struct {
		Static       []entry `yaml:"static"`
		DrainTimeout string  `yaml:"drainTimeout"`
	}{entries, m.DrainTimeout.String()}, nil
}

// entry is an endpoint as it is written.
type entry struct {
	Address string `yaml:"address"`
	Weight  uint32 `yaml:"weight"`
	State   string `yaml:"state"`
	Zone    string `yaml:"zone,omitempty"`

	Priority uint8  `yaml:"priority,omitempty"`
	Instance string `yaml:"instance,omitempty"`

	Adapters []string `yaml:"adapters,flow,omitempty"`
}

func newEntry(e fleet.Endpoint) entry {
	return entry{Address: e.Address, Weight: e.Weight, State: e.State.String(), Zone: e.Zone, Priority: e.Priority, Instance: e.Instance, Adapters: e.Adapters.All()}
}
