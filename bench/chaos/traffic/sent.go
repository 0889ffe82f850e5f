package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
)

// Sent is one request and what became of it.
type Sent struct {
	Form *Form
	// ID is its x-request-id.
	ID string
	// Sum is the SHA-256 of the body, of Length bytes.
	Sum    string
	Length int64
	// Outcome is the status, or [Cut], or [Left], or an error.
	Outcome string
	Status  int
	// Replica says who answered; "" if it was nobody.
	Replica string
	// Choices are the endpoints that the router named, as Envoy understood it, the
	// first choice first. There are none where Envoy chose by itself, and where it
	// could not tell because the response did not come.
	Choices []string
	// Attempts is how many endpoints Envoy tried.
	Attempts     int
	Began, Ended time.Time

	body func() ([]byte, error)
}

// Failed reports whether it ended otherwise than it should.
func (q *Sent) Failed() bool { return !q.Form.expected(q.Outcome) }

// Overlaps reports whether it ran at some time from begin to end.
func (q *Sent) Overlaps(begin, end time.Time) bool {
	return q.Began.Before(end) && q.Ended.After(begin)
}

// Matches reports whether a replica got just the bytes that were sent, or the
// beginning of them when the rest never came.
func (q *Sent) Matches(got *replica.Record) bool {
	switch {
	case got.ContentLength != -1 && got.ContentLength != q.Length, got.Body.Length > q.Length:
		return false
	case got.BodyError == "":
		return got.Body.SHA256 == q.Sum
	}
	body, err := q.body()
	if err != nil {
		return false
	}
	sum := sha256.Sum256(body[:got.Body.Length])
	return got.Body.SHA256 == hex.EncodeToString(sum[:])
}
