package config

import (
	"bytes"
	"encoding/json"
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
	var static *[]entry
	var service *Kubernetes
	if m.Kubernetes.Service != "" {
		service = &m.Kubernetes
	}
	if m.File == "" && m.DNS == nil && m.API == nil && m.Kubernetes.Service == "" {
		static = new(entries(m.Static))
	}
	return struct {
		Static       *[]entry    `yaml:"static,omitempty"`
		File         string      `yaml:"file,omitempty"`
		DNS          *DNS        `yaml:"dns,omitempty"`
		API          *API        `yaml:"api,omitempty"`
		Kubernetes   *Kubernetes `yaml:"kubernetes,omitempty"`
		DrainTimeout string      `yaml:"drainTimeout"`
	}{static, m.File, m.DNS, m.API, service, m.DrainTimeout.String()}, nil
}

// EncodeEndpoints returns a membership file with the endpoints, as JSON: decoding
// it gives equal ones.
func EncodeEndpoints(endpoints []fleet.Endpoint) []byte {
	text, err := json.MarshalIndent(struct {
		Endpoints []entry `json:"endpoints"`
	}{entries(endpoints)}, "", " ")
	if err != nil {
		panic(fmt.Sprintf("config: encode endpoints: %v", err)) // plain values always encode
	}
	return append(text, '\n')
}

// entry is an endpoint as it is written.
type entry struct {
	Address string `yaml:"address" json:"address"`
	Weight  uint32 `yaml:"weight" json:"weight"`
	State   string `yaml:"state" json:"state"`
	Zone    string `yaml:"zone,omitempty" json:"zone,omitempty"`

	Priority uint8  `yaml:"priority,omitempty" json:"priority,omitempty"`
	Instance string `yaml:"instance,omitempty" json:"instance,omitempty"`

	Adapters []string `yaml:"adapters,flow,omitempty" json:"adapters,omitempty"`
}

func entries(endpoints []fleet.Endpoint) []entry {
	list := make([]entry, len(endpoints))
	for i, e := range endpoints {
		list[i] = newEntry(e)
	}
	return list
}

func newEntry(e fleet.Endpoint) entry {
	return entry{Address: e.Address, Weight: e.Weight, State: e.State.String(), Zone: e.Zone, Priority: e.Priority, Instance: e.Instance, Adapters: e.Adapters.All()}
}
