package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// RequestLog is the number of requests that a replica remembers.
const RequestLog = 10_000

// Stats is the ground truth of one replica since the start or the last reset.
type Stats struct {
	Replica string `json:"replica"`
	// Started counts requests that a handler has; Finished those it has left.
	Started  int64 `json:"started"`
	Finished int64 `json:"finished"`
	// Outstanding is the number of requests in a handler now, exact also when
	// clients leave. A reset does not change it.
	Outstanding     int64 `json:"outstanding"`
	PeakOutstanding int64 `json:"peak_outstanding"`
	// Held is the number of requests that x-replica-hold keeps open now.
	Held int64 `json:"held"`
	// Aborted counts requests whose client left before the answer's end.
	Aborted int64 `json:"aborted"`
	// The tokens of the requests that were prefilled.
	PromptTokens     int64 `json:"prompt_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	// HitRate is CachedTokens / PromptTokens, 0 when there were none.
	HitRate float64 `json:"hit_rate"`
	// LastBody describes the last request body received.
	LastBody Body `json:"last_body"`
}

// Body is a request body as received, without its text.
type Body struct {
	SHA256 string `json:"sha256"`
	Length int64  `json:"length"`
}

// Record is one request as received.
type Record struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Proto     string `json:"proto"`
	RequestID string `json:"request_id"`
	// Traceparent is the W3C trace context that the request came with.
	Traceparent string `json:"traceparent,omitempty"`
	Body        Body   `json:"body"`
	// ContentLength is the value of the header, -1 when there was none.
	ContentLength    int64    `json:"content_length"`
	TransferEncoding []string `json:"transfer_encoding,omitempty"`
	// HeaderNames are the names received, lower case and sorted; Host included.
	HeaderNames []string `json:"header_names"`
	// BodyError says why the body could not be read to its end.
	BodyError string `json:"body_error,omitempty"`
	// Began is when a handler had the request, Ended when it had left it, the zero
	// time while it is there. A request counts as outstanding from one to the other.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
}

// counters keep Stats and the ring of Records. Safe for concurrent use.
type counters struct {
	mu     sync.Mutex
	stats  Stats
	ring   []*Record
	oldest int
}

// begin counts a request in and returns when that was.
func (c *counters) begin() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Started++
	c.stats.Outstanding++
	c.stats.PeakOutstanding = max(c.stats.PeakOutstanding, c.stats.Outstanding)
	return time.Now()
}

// end counts a request out; r may be nil.
func (c *counters) end(r *Record, aborted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r != nil {
		r.Ended = time.Now()
	}
	c.stats.Finished++
	c.stats.Outstanding--
	if aborted {
		c.stats.Aborted++
	}
}

func (c *counters) addHeld(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Held += n
}

func (c *counters) addPrompt(tokens, cached int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.PromptTokens += int64(tokens)
	c.stats.CachedTokens += int64(cached)
}

func (c *counters) addCompletion(tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.CompletionTokens += int64(tokens)
}

func (c *counters) addRecord(r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.LastBody = r.Body
	if len(c.ring) < RequestLog {
		c.ring = append(c.ring, r)
		return
	}
	c.ring[c.oldest] = r
	c.oldest = (c.oldest + 1) % RequestLog
}

func (c *counters) snapshot(name string) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Replica = name
	if s.PromptTokens > 0 {
		s.HitRate = float64(s.CachedTokens) / float64(s.PromptTokens)
	}
	return s
}

// records returns the ring, oldest first.
func (c *counters) records() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	records := make([]Record, 0, len(c.ring))
	for i := range c.ring {
		records = append(records, *c.ring[(c.oldest+i)%len(c.ring)])
	}
	return records
}

// reset keeps what is about requests still running.
func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	outstanding, held := c.stats.Outstanding, c.stats.Held
	c.stats = Stats{Started: outstanding, Outstanding: outstanding, PeakOutstanding: outstanding, Held: held}
	c.ring, c.oldest = nil, 0
}

func newRecord(r *http.Request, began time.Time, body []byte, bodyErr error) *Record {
	sum := sha256.Sum256(body)
	rec := &Record{
		Began:  began,
		Method: r.Method, Path: r.URL.Path, Proto: r.Proto, RequestID: r.Header.Get("x-request-id"),
		Traceparent:   r.Header.Get("traceparent"),
		Body:          Body{SHA256: hex.EncodeToString(sum[:]), Length: int64(len(body))},
		ContentLength: r.ContentLength, TransferEncoding: r.TransferEncoding,
		HeaderNames: headerNames(r.Header),
	}
	if bodyErr != nil {
		rec.BodyError = bodyErr.Error()
	}
	return rec
}

func headerNames(h http.Header) []string {
	names := make([]string, 0, len(h)+1)
	for name := range h {
		names = append(names, strings.ToLower(name))
	}
	names = append(names, "host")
	slices.Sort(names)
	return names
}
