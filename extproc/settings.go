package extproc

import (
	"context"
	"strconv"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/route"
)

// Settings are the parts of the configuration that a request is handled by.
// They are replaced as a whole; a stream keeps those it began with.
type Settings struct {
	// TenantHeader is the request header that names the tenant, in lower case.
	TenantHeader string
	// BodyLimit is the largest request body in bytes that Envoy buffers for us,
	// request_body_buffer_limit of its route. A larger body, or one of
	// unknown length, is not asked for.
	BodyLimit int64
	// TotalBodies is how many bytes of bodies all requests together may have asked for
	// and not been decided on; further ones are routed without theirs. 0 is no limit.
	TotalBodies int64
	// Streams is how many requests may be served at once, to the end of their
	// responses; for further ones Envoy is left to itself. 0 is no limit.
	Streams int64
	// InflateLimit bounds how many bytes of a compressed body are decompressed.
	InflateLimit int64
	// RetryConditions is the value of x-envoy-retry-on for requests that may be
	// retried; empty switches retries off.
	RetryConditions []string
	// RetryAttempts is the value of x-envoy-max-retries; 0 switches retries off.
	RetryAttempts int
	// Generation numbers the configuration they come from, for people.
	Generation int

	// ComponentHeader is the request header that names the component, and so the
	// pool, in lower case; empty for none.
	ComponentHeader string
	// Policies finds the policy of a request; nil routes all by the table's own.
	Policies PolicySource
	// Recorder writes requests down; nil records nothing. With one the bodies that
	// are known to fit are buffered under every policy.
	Recorder Recorder

	// Inspect is the share of the responses that are inspected, 0 to 1: what the engine
	// tells of the prompt's tokens is read in passing.
	Inspect float64

	// DecisionMetadata tells Envoy of each decision, as dynamic metadata in
	// DecisionNamespace; DecisionHeader tells the client, in the header of that name.
	DecisionMetadata, DecisionHeader bool

	retryOn, maxRetries string
	inspect             uint64 // the chance
}

// PolicySource finds the policy that Envoy's configuration has for a request.
type PolicySource interface {
	// Policy is given the context of the request's stream and its first message.
	Policy(ctx context.Context, first *extprocv3.ProcessingRequest) ChosenPolicy
}

// ChosenPolicy is what Envoy's configuration says of a request.
type ChosenPolicy struct {
	Policy route.Policy
	// Origin says in a word where the policy comes from. It is empty if nothing is
	// said: then Policy means nothing, and the pool's own holds.
	Origin string
	// Pool names the request's pool; empty if nothing is said of it. The cluster of
	// the request's route must be the pool's then.
	Pool string
}

// prepare renders the header values once instead of once a request.
func (s Settings) prepare() *Settings {
	s.TenantHeader, s.ComponentHeader = strings.ToLower(s.TenantHeader), strings.ToLower(s.ComponentHeader)
	if s.RetryAttempts > 0 && len(s.RetryConditions) > 0 {
		s.retryOn = strings.Join(s.RetryConditions, ",")
		s.maxRetries = strconv.Itoa(s.RetryAttempts)
	}
	s.inspect = chance(s.Inspect)
	return &s
}
