package trace

import (
	"fmt"
	"time"
)

// Bounds that are not options.
const (
	// MaxTokens is the longest prompt or answer, in tokens.
	MaxTokens = 1 << 24
	// MaxBlockTokens is the largest block, in tokens.
	MaxBlockTokens = 1 << 20
	// MaxLineBytes is the largest value of [Limits.LineBytes]: a longer prompt
	// than that would not be chunked to its end.
	MaxLineBytes = 1 << 24

	maxRequests = 1 << 26

	maxName = 256 // bytes of a session, model or tenant

	maxStandsFor = 1 << 30
)

// Options say how a trace is read. The zero value is for trusted and untrusted
// files alike.
type Options struct {
	// BlockTokens is the size of a block of the mooncake format, 1 to
	// MaxBlockTokens tokens; 0 means what a line says itself, or 512, as in
	// Mooncake's own traces. Other formats do not take it.
	BlockTokens int
	// TimeUnit is the unit of the timestamps of the two generic formats. 0 means
	// milliseconds for mooncake. For text it means that the number tells: below 1e11
	// it is seconds, below 1e14 milliseconds, below 1e17 microseconds, else
	// nanoseconds, so that seconds from any start are understood, and so is the time
	// since 1970 in each unit. Timestamps of text may also be dates of RFC 3339.
	TimeUnit time.Duration
	// Prompt, if set, is given each prompt that the trace has as text: the canonical
	// text that the router sees. It is private, and must not be printed.
	Prompt func(text string)
	// Limits bound what is read.
	Limits Limits
}

// Limits bound a trace. 0 means the default of each.
type Limits struct {
	// Bytes is how many decompressed bytes are read, 8 GiB by default.
	Bytes int64
	// LineBytes is the longest line or CSV record, at most MaxLineBytes; 8 MiB by
	// default.
	LineBytes int
	// Requests is the largest number of requests, a million by default, 1<<26 at most. What a
	// format has to keep beside them (lengths of contents, sessions) is bounded by the
	// same number each.
	Requests int
	// Chunks is the largest number of chunks of all requests together, each of
	// which takes 8 bytes; 32 Mi by default.
	Chunks int
}

// withDefaults returns the options to read a format with, or what is wrong with
// them.
func (o Options) withDefaults(f format) (Options, error) {
	l := &o.Limits
	l.Bytes = orDefault(l.Bytes, 8<<30)
	l.LineBytes = orDefault(l.LineBytes, 8<<20)
	l.Requests = orDefault(l.Requests, 1_000_000)
	l.Chunks = orDefault(l.Chunks, 32<<20)
	switch {
	case l.Bytes < 0 || l.Chunks < 0:
		return o, fmt.Errorf("limits of %d bytes and %d chunks: want positive ones", l.Bytes, l.Chunks)
	case l.Requests < 0 || l.Requests > maxRequests:
		return o, fmt.Errorf("limit of %d requests: want 1 to %d", l.Requests, maxRequests)
	case l.LineBytes < 0 || l.LineBytes > MaxLineBytes:
		return o, fmt.Errorf("limit of a line, %d bytes: want 1 to %d", l.LineBytes, MaxLineBytes)
	case o.BlockTokens < 0 || o.BlockTokens > MaxBlockTokens:
		return o, fmt.Errorf("block of %d tokens: want 1 to %d", o.BlockTokens, MaxBlockTokens)
	case o.BlockTokens != 0 && !f.anyBlock:
		return o, fmt.Errorf("block of %d tokens: the format %s has its own", o.BlockTokens, f.name)
	case o.TimeUnit < 0:
		return o, fmt.Errorf("time unit %v: want a positive one", o.TimeUnit)
	case o.TimeUnit != 0 && !f.anyUnit:
		return o, fmt.Errorf("time unit %v: the format %s has its own", o.TimeUnit, f.name)
	}
	return o, nil
}

func orDefault[N int | int64](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}
