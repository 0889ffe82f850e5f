package extproc

import (
	"strconv"
	"strings"
)

// Settings are the parts of the configuration that a request is handled by.
// They are replaced as a whole; a stream keeps those it began with.
type Settings struct {
	// TenantHeader is the request header that names the tenant, in lower case.
	TenantHeader string
	// BodyLimit is the largest request body in bytes that Envoy buffers for us,
	// request_body_buffer_limit of its route. Of a larger body, or one of
	// unknown length, only the beginning is asked for.
	BodyLimit int64
	// InflateLimit bounds how many bytes of a compressed body are decompressed.
	InflateLimit int64
	// RetryConditions is the value of x-envoy-retry-on for requests that may be
	// retried; empty switches retries off.
	RetryConditions []string
	// RetryAttempts is the value of x-envoy-max-retries; 0 switches retries off.
	RetryAttempts int

	retryOn, maxRetries string
}

// prepare renders the header values once instead of once a request.
func (s Settings) prepare() *Settings {
	s.TenantHeader = strings.ToLower(s.TenantHeader)
	if s.RetryAttempts > 0 && len(s.RetryConditions) > 0 {
		s.retryOn = strings.Join(s.RetryConditions, ",")
		s.maxRetries = strconv.Itoa(s.RetryAttempts)
	}
	return &s
}
