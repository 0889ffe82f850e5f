package extproc

import "fmt"

// Problem is what kept a request from being routed by its text. None of them
// fails the request.
type Problem uint8

// The problems, and under each what is done instead: see actions.
const (
	NoProblem Problem = iota
	// NoEndpoints: the membership is empty.
	NoEndpoints
	// NoText: the body, or the lack of one, holds no prompt text.
	NoText
	// NotJSON: the path's body should be a JSON object and is not.
	NotJSON
	// BodyTooLarge: the body is larger than the limit; it was not asked for.
	BodyTooLarge
	// UnknownLength: the body's length is not known before it ends, so it was
	// not asked for.
	UnknownLength
	// BodyCut: only a part of the body came.
	BodyCut
	// BodyNotSent: the body was asked for and the response came first, because
	// Envoy's allowed_override_modes does not list BUFFERED.
	BodyNotSent
	// UnknownEncoding: content-encoding is not one that is read.
	UnknownEncoding
	// BrokenEncoding: the compressed body cannot be decompressed.
	BrokenEncoding
	// InflateLimit: the decompressed body is larger than the limit.
	InflateLimit
	// TooDeep: a part of the body is nested deeper than is looked into.
	TooDeep
	// InvalidTenant: the tenant id breaks the rules for one.
	InvalidTenant
	// Upgrade: the request asks for a protocol upgrade; its body never ends.
	Upgrade
	// HeadersFull: the request has so many headers, or so large ones, that Envoy
	// would refuse it with ours: the choice travels as metadata alone, and without
	// retries.
	HeadersFull
	// UnsupportedMode: Envoy sends the request body in a mode that cannot be
	// steered by its text.
	UnsupportedMode
	// Overloaded: the bodies of other requests take all the memory that is allowed;
	// this one was not asked for, or not waited for to its end.
	Overloaded
	// Panicked: a defect in this program; the request must not pay for it.
	Panicked
)

// Action is what is done with a request that has a problem.
type Action string

// The actions. There is no action that fails a request.
const (
	// LeastLoaded routes to the least loaded endpoint.
	LeastLoaded Action = "least loaded endpoint"
	// RawKey makes the key of the body's first bytes.
	RawKey Action = "key of the first bytes"
	// PartialKey makes the key of the text that was read so far.
	PartialKey Action = "key of the text so far"
	// IgnoreTenant makes the key as if no tenant had been named.
	IgnoreTenant Action = "key without a tenant"
	// PassThrough leaves the choice to Envoy's fallback policy.
	PassThrough Action = "Envoy's own choice"
	// MetadataOnly leaves the request's headers as they are.
	MetadataOnly Action = "choice without headers of ours"
	// Route is the normal way.
	Route Action = "key of the text"
)

var problems = [...]struct {
	name   string
	action Action
}{
	NoProblem:       {"none", Route},
	NoEndpoints:     {"no_endpoints", PassThrough},
	NoText:          {"no_text", LeastLoaded},
	NotJSON:         {"not_json", RawKey},
	BodyTooLarge:    {"body_too_large", LeastLoaded},
	UnknownLength:   {"unknown_length", LeastLoaded},
	BodyCut:         {"body_cut", PartialKey},
	BodyNotSent:     {"body_not_sent", PassThrough},
	UnknownEncoding: {"unknown_encoding", RawKey},
	BrokenEncoding:  {"broken_encoding", RawKey},
	InflateLimit:    {"inflate_limit", PartialKey},
	TooDeep:         {"too_deep", PartialKey},
	InvalidTenant:   {"invalid_tenant", IgnoreTenant},
	Upgrade:         {"upgrade", LeastLoaded},
	HeadersFull:     {"headers_full", MetadataOnly},
	UnsupportedMode: {"unsupported_mode", LeastLoaded},
	Overloaded:      {"overloaded", LeastLoaded},
	Panicked:        {"panic", PassThrough},
}

// Problems returns all problems in order, for those who count them.
func Problems() []Problem {
	all := make([]Problem, len(problems))
	for i := range all {
		all[i] = Problem(i)
	}
	return all
}

// String returns the name that spans and metrics use.
func (p Problem) String() string {
	if int(p) < len(problems) {
		return problems[p].name
	}
	return fmt.Sprintf("problem(%d)", uint8(p))
}

// Action returns what is done about the problem.
func (p Problem) Action() Action { return problems[p].action }
