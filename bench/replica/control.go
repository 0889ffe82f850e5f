package replica

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Control is what a test asks of a replica by request headers.
type Control struct {
	// Status (x-replica-status, 400..599) is answered, as an error in OpenAI's shape.
	Status int
	// Delay (x-replica-delay-ms) passes before the response headers.
	Delay time.Duration
	// FirstToken (x-replica-first-token-ms) replaces front end, queue and prefill.
	FirstToken *time.Duration
	// Tokens (x-replica-tokens) is the exact length of the answer: the number of
	// content chunks of a stream.
	Tokens int
	// Token (x-replica-token-ms) replaces the decode step.
	Token *time.Duration
	// Reset (x-replica-reset) drops the connection (the stream in HTTP/2)
	// "before" the response headers or "mid" way through the body.
	Reset string
	// Hold (x-replica-hold) keeps the response open, after the first token of a
	// stream and before the headers of a plain answer, until the client leaves
	// or POST /control/release.
	Hold bool
}

// The values of x-replica-reset.
const (
	resetBefore = "before"
	resetMid    = "mid"
)

// The bounds of the numbers in control headers.
const (
	maxControlMillis = 3_600_000
	maxControlTokens = 1_000_000
)

func parseControl(h http.Header) (Control, error) {
	p := controlParser{header: h}
	c := Control{
		Status:     p.number("x-replica-status", 400, 599),
		Delay:      millis(p.number("x-replica-delay-ms", 0, maxControlMillis)),
		FirstToken: p.optionalMillis("x-replica-first-token-ms"),
		Tokens:     p.number("x-replica-tokens", 1, maxControlTokens),
		Token:      p.optionalMillis("x-replica-token-ms"),
		Reset:      h.Get("x-replica-reset"),
		Hold:       h.Get("x-replica-hold") != "",
	}
	if c.Reset != "" && c.Reset != resetBefore && c.Reset != resetMid {
		p.fail("x-replica-reset %q: want %s or %s", c.Reset, resetBefore, resetMid)
	}
	return c, p.err
}

// controlParser reads numeric headers and keeps the first error.
type controlParser struct {
	header http.Header
	err    error
}

func (p *controlParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// number returns 0 for an absent header.
func (p *controlParser) number(name string, low, high int) int {
	value := p.header.Get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		p.fail("%s %q: want a number from %d to %d", name, value, low, high)
		return 0
	}
	return n
}

func (p *controlParser) optionalMillis(name string) *time.Duration {
	if p.header.Get(name) == "" {
		return nil
	}
	d := millis(p.number(name, 0, maxControlMillis))
	return &d
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }
