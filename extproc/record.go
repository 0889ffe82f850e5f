package extproc

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// Record is what is known of one request. It belongs to the request's stream:
// observers read it during the call and keep nothing of it.
type Record struct {
	// Context is the stream's: its gRPC metadata carries Envoy's trace context.
	Context context.Context
	// TraceParent and TraceState are the request's own W3C trace headers.
	TraceParent, TraceState string
	// RequestID is Envoy's x-request-id, for people to search by. It may be
	// forged or repeated, so nothing is counted by it.
	RequestID string
	// Probe is the id of a probe ([ProbeHeader]), empty for other requests. Clients may
	// forge it, so it has no effect but that the decision can be asked for by it.
	Probe string

	// Began is when the request's headers arrived, Scanned when its body had
	// arrived and the key was to be computed, Keyed when that was done, and Decided
	// when an endpoint had been chosen.
	Began, Scanned, Keyed, Decided time.Time

	// BodyBytes is how much of the request body was seen, as it was sent.
	BodyBytes int64
	// Generation is that of the configuration the request is handled by.
	Generation int
	// Pool is the name of the request's pool, empty for the default one.
	Pool string
	// Unknown is what the request, or Envoy's configuration for it, named as its pool and
	// is none's.
	Unknown Unknown
	// PolicyOrigin is where the policy comes from, empty if it is warmpath's own.
	PolicyOrigin string
	// Arm is whose policy that is while the pool is split.
	Arm trial.Arm
	// API is the request's format by its path.
	API prefix.API
	// KeyChars is how many characters (bytes on native invoke paths) the key
	// covers.
	KeyChars int
	// PromptChars is how many characters the prompt has. Beyond what is read of it the
	// bytes of the body stand for them.
	PromptChars int
	// HasTenant says whether a valid tenant is part of the key. The id itself is
	// a secret of the client's and is not recorded.
	HasTenant bool
	// Model and Adapter are the client's words, cut to a printable length; they
	// must not become metric labels.
	Model, Adapter string
	// Problems are what kept the request from being routed by its text alone.
	Problems []Problem
	Decision route.Decision

	// Answered is when the response's headers came, zero before.
	Answered time.Time
	// Status is the response's status code, 0 before it is known.
	Status int
	// Served is the endpoint that answered, as Envoy reports it; empty if it did
	// not say.
	Served string
	// Attempts is how many endpoints Envoy tried.
	Attempts int
	// Unanswered says, at the end, that the stream ended before the response's
	// headers: the client left, or Envoy gave up waiting for us and the response
	// runs on uncounted.
	Unanswered bool
	// Missed says that Envoy passed the chosen endpoint over: another served at the
	// first attempt, or one that the decision had not named.
	Missed bool
	// Inspection is what was read of the response, at the end; nil if it was not
	// inspected.
	Inspection *Inspection
}

// Unknown says which words for a request's pool belong to no pool; the next that says
// something counted instead. It is for fleets with pools beside the default one.
type Unknown struct {
	// Pool is the name in Envoy's configuration, Component the component header, Model
	// the model in the path or the body.
	Pool, Component, Model bool
}

// Observer is told what happens to each request. The calls come from the
// request's own goroutine and hold it up, so they must not block.
type Observer interface {
	// Decided is called once an endpoint was chosen, or none could be.
	Decided(*Record)
	// Served is called when the response headers come. Without Record.Served no
	// endpoint answered, or Envoy does not tell: a 503 is Envoy's own then.
	Served(*Record)
	// Ended is called when the stream ends and the slot was given back.
	Ended(*Record)
	// Panicked is called when a panic was recovered, before or after the other
	// calls. stack is the goroutine's stack trace; the value of the panic, which
	// might hold text of the request, is not passed on.
	Panicked(r *Record, stack []byte)
}
