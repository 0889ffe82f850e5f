package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxBody is what is read of an answer, so that an engine does not log a
	// reset; the verdict is the status alone.
	maxBody = 4 << 10
	// maxFailure bounds the text of a failure, which may quote an answer that
	// is not HTTP.
	maxFailure = 200
)

// probe asks an endpoint once. It returns why it failed, empty if it did not.
func (p *Prober) probe(ctx context.Context, address string) (failure string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+p.options.Path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("User-Agent", "warmpath-health")
	// The transport alone follows no redirect.
	response, err := p.options.Transport.RoundTrip(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer in %v", p.options.Timeout)
	case err != nil:
		text := err.Error()
		return strings.ToValidUTF8(text[:min(len(text), maxFailure)], "") // a cut may go through a letter
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	if response.StatusCode < p.options.MinStatus || response.StatusCode > p.options.MaxStatus {
		return fmt.Sprintf("status %d, want %d to %d", response.StatusCode, p.options.MinStatus, p.options.MaxStatus)
	}
	return ""
}
