package gossip

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// warnings a minute are logged as such. A wrong key gives hundreds.
	warnings = 3
	// maxLine is how much of a line is kept: some of it is sent by others.
	maxLine = 300
)

// lines brings what memberlist prints into the program's log: as a warning what it
// calls an error or a warning, a few a minute; the rest for those who debug. It is an
// io.Writer, which log.Logger calls one at a time.
type lines struct {
	to    *slog.Logger
	since time.Time
	n     int
	ends  atomic.Bool
}

// hush ends the warnings: who ends need not be told that sockets are closed.
func (l *lines) hush() { l.ends.Store(true) }

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	text := string(line[:min(len(line), maxLine)])
	level := slog.LevelDebug
	if strings.Contains(text, "[WARN]") || strings.Contains(text, "[ERR") {
		level = l.level()
	}
	l.to.Log(context.Background(), level, "gossip: memberlist", "says", strings.TrimSpace(text))
	return len(line), nil
}

// level of the next warning.
func (l *lines) level() slog.Level {
	if now := time.Now(); l.since.IsZero() || now.Sub(l.since) > time.Minute {
		l.since, l.n = now, 0
	}
	if l.n++; l.n > warnings || l.ends.Load() {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
