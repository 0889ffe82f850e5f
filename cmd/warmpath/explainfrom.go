package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/warmpath/warmpath/internal/live/view"
)

// explainFrom asks a running server about each body.
func explainFrom(ctx context.Context, o explainOptions, files []string, stdin io.Reader, stdout io.Writer) error {
	if o.config != "" || o.endpoints != "" || o.prefixLength != 0 || o.showText {
		return usageError{errors.New("explain: -from asks a server with its own configuration and endpoints, which sends no text back: leave -config, -endpoints, -prefix-length and -show-text out")}
	}
	c, err := o.server.open()
	if err != nil {
		return usageError{fmt.Errorf("explain: %w", err)}
	}
	defer c.close()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	for _, file := range files {
		body, err := readBody(file, stdin)
		if err != nil {
			return usageError{err}
		}
		query := url.Values{"path": {o.path}, "header": o.headers}
		var x view.Explanation
		if err := c.ask(ctx, http.MethodPost, "/api/explain?"+query.Encode(), bytes.NewReader(body), &x); err != nil {
			return err
		}
		if o.json {
			err = encoder.Encode(x)
		} else {
			printExplanation(&b, file, x)
		}
		if err != nil {
			return err
		}
	}
	_, err = b.WriteTo(stdout)
	return err
}

// printExplanation writes what a server said of a body.
func printExplanation(b *bytes.Buffer, file string, x view.Explanation) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	d := x.Decision
	fmt.Fprintf(b, "%s\n", file)
	line("api", "%s", x.API)
	line("pool", "%s", x.Pool)
	line("tenant", "from %s", x.TenantSource)
	switch {
	case d.Key == "":
		line("key", "none")
	case d.Depth > 0:
		line("key", "%s of the first %d of %d characters", d.Key, d.Depth, x.TextChars)
	default:
		line("key", "%s of all %d characters that are read", d.Key, x.TextChars)
	}
	for i, home := range x.Homes {
		name := "then"
		if i == 0 {
			name = "home"
		}
		line(name, "%s, %d running, at most %d", home.Address, home.Load, home.Bound)
	}
	if d.Cached >= 0 {
		line("cached", "%d of %d characters, as far as is known", d.Cached, d.Characters)
	}
	if d.Chosen != "" {
		line("chosen", "%s, by %s", d.Chosen, d.Strategy)
	}
	line("reason", "%s: %s", d.Reason, d.Sentence)
	if len(x.Notes) > 0 {
		line("notes", "%s", strings.Join(x.Notes, ", "))
	}
}
