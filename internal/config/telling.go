package config

import "github.com/warmpath/warmpath/internal/config/strict"

// Decision says where each decision is told of, beside spans and metrics.
type Decision struct {
	// Metadata tells Envoy, as dynamic metadata for its access log.
	Metadata bool `yaml:"metadata"`
	// Header tells clients, in a header of the response.
	Header bool `yaml:"header"`
}

func (d *Decision) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "metadata", Decode: strict.Bool(&d.Metadata)},
		strict.Field{Name: "header", Decode: strict.Bool(&d.Header)},
	)
}
