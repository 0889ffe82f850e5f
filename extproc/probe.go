package extproc

import corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

// ProbeHeader marks a request as a probe of `warmpath doctor`, which finds its decision by
// the header's value: gateways at the edge replace a client's x-request-id. It has no
// effect on the decision.
const ProbeHeader = "x-warmpath-probe"

// probeDigits is the length of a probe's id.
const probeDigits = 32

// IsProbeID reports whether a text is the id of a probe: 32 hex digits in lower case.
func IsProbeID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == probeDigits
}

// probeID returns the id of a probe, empty if the header's value is none.
func probeID(header *corev3.HeaderValue) string {
	if max(len(header.GetRawValue()), len(header.GetValue())) > probeDigits {
		return ""
	}
	if id := value(header); IsProbeID(id) {
		return id
	}
	return ""
}
