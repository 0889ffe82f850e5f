package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger returns a logger for people (format "text") or machines ("json").
// The level can be changed while it is in use.
func NewLogger(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
