package extproc

import (
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
	traceParent   string
	traceState    string
	requestID     string
}

// readHead takes what is needed from the headers in one pass, without a map of
// them. Of a header that comes twice the first counts.
func readHead(headers *corev3.HeaderMap, tenantHeader string) requestHead {
	h := requestHead{contentLength: -1}
	for _, header := range headers.GetHeaders() {
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
			h.upgrade = true
		case ":protocol": // extended CONNECT, HTTP/2's way to upgrade
			h.upgrade = true
		case ":method":
			h.upgrade = h.upgrade || strings.EqualFold(value(header), "CONNECT")
		case "traceparent":
			setOnce(&h.traceParent, header)
		case "tracestate":
			setOnce(&h.traceState, header)
		case "x-request-id":
			setOnce(&h.requestID, header)
		}
		if header.GetKey() == tenantHeader {
			setOnce(&h.prefix.TenantHeader, header)
		}
	}
	return h
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
