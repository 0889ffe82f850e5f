package web

import (
	"embed"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/warmpath/warmpath/internal/origin"
)

//go:embed page
var files embed.FS

// policy lets the page load its own files and talk to its own server, and nothing else;
// nobody may show it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page is for what a browser shows.
func page(next http.Handler) http.Handler { return headers(origin.ByAddress(next)) }

// api is for what the page's scripts and programs ask. A web page of another origin gets
// nothing, not even a stream that it could not read.
func api(next http.Handler) http.Handler {
	return headers(origin.ByAddress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			fail(w, http.StatusForbidden, "the request comes from a web page of another origin")
			return
		}
		if from := r.Header.Get("Origin"); from != "" && !sameOrigin(from, r) {
			fail(w, http.StatusForbidden, "the request comes from a web page of another origin")
			return
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // what is left of it is not what was asked
			fail(w, http.StatusBadRequest, fmt.Sprintf("the query %.80q: %.80v", r.URL.RawQuery, err))
			return
		}
		next.ServeHTTP(w, r)
	})))
}

func sameOrigin(origin string, r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return strings.EqualFold(origin, scheme+r.Host)
}

// headers say what a browser may do with an answer.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func servePageFile(w http.ResponseWriter, r *http.Request) {
	pageFile(r.PathValue("file"))(w, r)
}

// pageFile serves one of the page's files.
func pageFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := files.ReadFile("page/" + name)
		if err != nil {
			fail(w, http.StatusNotFound, fmt.Sprintf("the page has no file %.80q", name))
			return
		}
		w.Header().Set("Content-Type", contentType(name))
		_, _ = w.Write(text)
	}
}

// contentType is that of a file of the page. The machine's own table may say anything.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// isJSON reports whether a content type says JSON. A form of another site's page cannot
// send that.
func isJSON(value string) bool {
	media, _, err := mime.ParseMediaType(value)
	return err == nil && media == "application/json"
}
