package config

import "github.com/warmpath/warmpath/internal/config/strict"

// Inspection says how much is read of what engines answer: how many tokens of a prompt
// were cached, and when the text began.
type Inspection struct {
	// Share of the responses is inspected, 0 to 1.
	Share float64 `yaml:"share"`
}

func (i *Inspection) decode(v strict.Value) {
	v.Fields(strict.Field{Name: "share", Decode: strict.Float(&i.Share, 0, 1)})
}
