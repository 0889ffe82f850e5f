package prefix

import "strings"

// Head is what the request headers say. Absent headers are empty.
type Head struct {
	// Path is the request path, with or without its query.
	Path string
	// ContentType and ContentEncoding are the headers of these names.
	ContentType     string
	ContentEncoding string
	// TenantHeader is the value of the header that names the tenant.
	TenantHeader string
}

// NeedsBody reports whether the body can matter to the key. It is false for
// uploads that are not JSON, such as an audio file in a form: they have no
// prefix. It is always true on the native invoke paths, whose bodies are opaque.
func (h Head) NeedsBody() bool {
	if api, _ := Classify(h.Path); api == Invocations {
		return true
	}
	return !isUpload(h.ContentType)
}

// isUpload tells media types that never carry JSON. A form type does not: it is
// what curl -d claims of a JSON body.
func isUpload(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.TrimSpace(media)
	if equalFold(media, "application/octet-stream") {
		return true
	}
	for _, family := range []string{"multipart/", "audio/", "image/", "video/"} {
		if len(media) >= len(family) && equalFold(media[:len(family)], family) {
			return true
		}
	}
	return false
}

// encoding is what has to be done to a body before it can be read.
type encoding uint8

const (
	plain encoding = iota
	gzipped
	unreadable
)

// parseEncoding reads a content-encoding header; "identity" counts as nothing.
func parseEncoding(header string) encoding {
	e := plain
	for coding := range strings.SplitSeq(header, ",") {
		coding = strings.TrimSpace(coding)
		switch {
		case coding == "" || equalFold(coding, "identity"):
		case e == plain && (equalFold(coding, "gzip") || equalFold(coding, "x-gzip")):
			e = gzipped
		default:
			e = unreadable
		}
	}
	return e
}

func equalFold(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
