package config

import (
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// EngineMetrics says how often the engines' own metrics are read.
type EngineMetrics struct {
	// Interval is the time between two readings of an endpoint's; 0 reads none.
	Interval time.Duration `yaml:"interval"`
}

func (e *EngineMetrics) decode(v strict.Value) {
	v.Fields(strict.Field{Name: "interval", Decode: strict.Duration(&e.Interval, 0, time.Hour)})
	if e.Interval > 0 && e.Interval < time.Second {
		v.Report("interval", "%v is below the minimum 1s (want 0s for never, or 1s..1h)", e.Interval)
	}
}
