package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// MaxBody is how large a body to explain may be, in bytes.
	MaxBody = 4 << 20
	// maxExplains is how many bodies are explained at once.
	maxExplains = 2
	// uploadTimeout is how long one may take to come.
	uploadTimeout = 30 * time.Second
	// maxHeaders and maxHeader bound the headers that are told with it.
	maxHeaders = 16
	maxHeader  = 1024
	maxPath    = 2048
)

// Question is a request as a client would send it.
type Question struct {
	Path string
	// Headers are lines, "name: value".
	Headers []string
	Body    []byte
}

// explain serves /api/explain: the body is the request's, ?path= its path, ?header= a
// header of it, which may be repeated. Nothing of it is in the answer.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	if !isJSON(r.Header.Get("Content-Type")) {
		fail(w, http.StatusUnsupportedMediaType, "the content type is not application/json")
		return
	}
	select {
	case s.explains <- struct{}{}:
		defer func() { <-s.explains }()
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d bodies are being explained, which is as many as may be at once", maxExplains))
		return
	}
	q, err := question(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout))
	q.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit))
		return
	case err != nil:
		fail(w, http.StatusBadRequest, "the body did not come whole: "+err.Error())
		return
	}
	explanation, err := s.options.Explain(q)
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(explanation), '\n'))
}

func question(r *http.Request) (Question, error) {
	query := r.URL.Query()
	q := Question{Path: query.Get("path"), Headers: query["header"]}
	switch {
	case q.Path == "":
		q.Path = "/v1/chat/completions"
	case !strings.HasPrefix(q.Path, "/") || len(q.Path) > maxPath:
		return q, fmt.Errorf("path=%.40q: want a path that begins with /, of %d bytes at most", q.Path, maxPath)
	}
	if len(q.Headers) > maxHeaders {
		return q, fmt.Errorf("%d headers, want at most %d", len(q.Headers), maxHeaders)
	}
	for _, line := range q.Headers {
		name, _, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" || len(line) > maxHeader {
			return q, fmt.Errorf("a header of %d bytes: want 'name: value', of %d bytes at most", len(line), maxHeader)
		}
	}
	return q, nil
}
