package extproc

import (
	"cmp"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/warmpath/warmpath/internal/prefix"
)

// requestHead is what is read from a request's headers.
type requestHead struct {
	prefix        prefix.Head
	contentLength int64 // -1 when unknown
	upgrade       bool
	// full: with headers of ours Envoy might refuse the request.
	full bool
	// steered: the client sent the header that names the destination, pooled: the
	// one that names the pool's cluster.
	steered, pooled bool
	component       string
	traceParent     string
	traceState      string
	requestID       string
	probe           string // a probe's id, empty for other requests
}

// Envoy answers 500 when a mutation takes a request above its limits, by default
// 100 headers and 60 KiB. Below these there is room for ours.
const (
	roomyHeaders = 90
	roomyBytes   = 52 << 10
)

// readHead takes what is needed from the headers in one pass, without a map of
// them. Of a header that comes twice the first counts.
func readHead(headers *corev3.HeaderMap, tenantHeader, componentHeader string) requestHead {
	h := requestHead{contentLength: -1}
	size := 0
	var upgrade, connection string
	for _, header := range headers.GetHeaders() {
		size += len(header.GetKey()) + len(header.GetRawValue()) + len(header.GetValue())
		switch header.GetKey() {
		case ":path":
			setOnce(&h.prefix.Path, header)
		case "content-type":
			setOnce(&h.prefix.ContentType, header)
		case "content-encoding":
			setOnce(&h.prefix.ContentEncoding, header)
		case "content-length":
			if n, err := strconv.ParseInt(value(header), 10, 64); err == nil && n >= 0 {
				h.contentLength = n
			}
		case "upgrade":
			setOnce(&upgrade, header)
		case "connection":
			setOnce(&connection, header)
		case ":protocol": // extended CONNECT, HTTP/2's way to upgrade
			h.upgrade = true
		case ":method":
			h.upgrade = h.upgrade || value(header) == "CONNECT"
		case "traceparent":
			setOnce(&h.traceParent, header)
		case "tracestate":
			setOnce(&h.traceState, header)
		case "x-request-id":
			setOnce(&h.requestID, header)
		case ProbeHeader:
			h.probe = cmp.Or(h.probe, probeID(header))
		case DestinationKey:
			h.steered = true
		case PoolHeader:
			h.pooled = true
		}
		switch header.GetKey() { // both may have any name
		case "":
		case tenantHeader:
			setOnce(&h.prefix.TenantHeader, header)
		case componentHeader:
			setOnce(&h.component, header)
		}
	}
	h.upgrade = h.upgrade || upgrade != "" && containsFold(connection, "upgrade")
	h.full = len(headers.GetHeaders()) > roomyHeaders || size > roomyBytes
	return h
}

// containsFold reports whether a comma-separated list has a token in any case.
func containsFold(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}

// unread says why a request's body is not read for its key, or NoProblem when
// it is. A body is read only if it is known to fit into Envoy's buffer: BUFFERED
// answers a larger one with 413, and BUFFERED_PARTIAL, which would take its
// beginning, loses the end of some requests, which then hang (Envoy 1.40).
func (h requestHead) unread(bodyLimit int64) Problem {
	switch {
	case h.upgrade:
		return Upgrade
	case !h.prefix.NeedsBody():
		return NoText
	case h.contentLength < 0:
		return UnknownLength
	case h.contentLength > bodyLimit:
		return BodyTooLarge
	}
	return NoProblem
}

// Unread says why the server would not read the body of a request with these
// headers for its key, or NoProblem when it would. bodyLimit is
// [Settings].BodyLimit. It is for explanations.
func Unread(headers *corev3.HeaderMap, bodyLimit int64) Problem {
	return readHead(headers, "", "").unread(bodyLimit)
}

func setOnce(field *string, header *corev3.HeaderValue) {
	if *field == "" {
		*field = value(header)
	}
}

// value returns a header's value. Envoy sends it in raw_value, which takes any
// byte; value is the older field.
func value(header *corev3.HeaderValue) string {
	if raw := header.GetRawValue(); raw != nil {
		return string(raw)
	}
	return header.GetValue()
}
