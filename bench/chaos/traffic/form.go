package traffic

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// Form is one way in which clients use the gateway.
type Form struct {
	Name string
	API  load.API
	// Size is about how many bytes the body has.
	Size int
	// Unsized requests have no content-length, so nobody reads them for a key.
	Unsized bool
	// Parts is in how many parts the body is sent, 40 ms apart; 0 is at once.
	Parts  int
	Stream bool
	// Tokens is the length of the answer, TokenTime the time for each.
	Tokens    int
	TokenTime time.Duration
	// Ask are further headers for the replica, name and value in turn.
	Ask []string
	// Patience is when the client leaves; 0 is never.
	Patience time.Duration
	// Ends are the outcomes that are as they should be: see [Sent.Outcome].
	Ends []string
}

// Outcomes other than a status.
const (
	// Cut is a response of status 200 that broke off or is not what was asked for.
	Cut = "cut"
	// Left is that of a client whose patience was over.
	Left = "left"
	// Refused is that of a client whose connection was refused: nothing was sent.
	Refused = "refused"
)

// Teapot asks the replica for status 418, which spares it the work for a large
// body.
func Teapot() []string { return []string{"x-replica-status", "418"} }

// hot is the share of the requests that have one and the same beginning, which is
// more than its home may take; the others spread over prefixes.
const (
	hot      = 0.5
	prefixes = 20
	tenants  = 5
)

// Body makes the request with a number, which no other request has: the same one
// whenever it is called.
func (f *Form) Body(seed uint64, n int) (load.Request, error) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	prefix := 0
	if random.Float64() >= hot {
		prefix = 1 + random.IntN(prefixes)
	}
	p := load.Prompt{Prefix: prefix, Messages: []load.Message{
		{Role: "system", Content: system(prefix)}, {Role: "user", Content: fmt.Sprintf("Request %d.", n)},
	}}
	if prefix%3 == 1 {
		p.Tenant = fmt.Sprintf("tenant-%d", prefix%tenants)
	}
	if filler := f.Size - len(p.Messages[0].Content) - 200; filler > 0 {
		p.Messages[1].Content += strings.Repeat("x", filler)
	}
	return load.Kind{API: f.API, Model: "llama-70b", Stream: f.Stream, ModelLast: n%2 == 0}.Request(p)
}

// Alike makes a request of the given beginning.
func (f *Form) alike(beginning string, n int) (load.Request, error) {
	return load.Kind{API: f.API, Model: "llama-70b", Stream: f.Stream}.Request(load.Prompt{Messages: []load.Message{
		{Role: "system", Content: strings.Repeat(beginning+" ", 1+1500/len(beginning))},
		{Role: "user", Content: fmt.Sprintf("Request %d.", n)},
	}})
}

// system is a system prompt of more than 1,024 characters.
func system(prefix int) string { return strings.Repeat(fmt.Sprintf("Rule %d. ", prefix), 150) }

// headers are what the replica is asked for.
func (f *Form) headers() []string {
	ask := append([]string(nil), f.Ask...)
	if f.Tokens > 0 {
		ask = append(ask, "x-replica-first-token-ms", "0",
			"x-replica-tokens", strconv.Itoa(f.Tokens), "x-replica-token-ms", strconv.Itoa(int(f.TokenTime.Milliseconds())))
	}
	return ask
}

// expected reports whether an outcome is as it should be.
func (f *Form) expected(outcome string) bool {
	for _, e := range f.Ends {
		if e == outcome {
			return true
		}
	}
	return false
}
