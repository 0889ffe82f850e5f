package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

// What is read while something is told is told together, at the end too, and none
// of it is left out.
func TestBurst(t *testing.T) {
	const burst = 3 * readAhead
	for _, tc := range []struct {
		name, last string
		want       error
	}{
		{"the server ends the watch", "", io.EOF},
		{"the watch breaks", "{", io.ErrUnexpectedEOF},
		{"an unknown event", `{"type":"ODD","object":{"metadata":{"resourceVersion":"1"}}}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []int
				w := watcherOf(t, func(u discovery.Update) {
					told = append(told, u.Set.Len())
					synctest.Wait() // all that may be read has been read
				})
				var text strings.Builder
				for i := range burst {
					fmt.Fprintf(&text, `{"type":"ADDED","object":{"metadata":{"name":"s%d","resourceVersion":"%d"},"addressType":"IPv4",`+
						`"endpoints":[{"addresses":["10.0.0.%d"]}],"ports":[{"name":"http","port":8000}]}}`, i, i+1, i+1)
				}
				err := w.follow(eventsOf(text.String() + tc.last))
				if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("it ends with %v, want %v", err, tc.want)
				}
				if len(told) > 2+burst/readAhead || told[len(told)-1] != burst || !slices.IsSorted(told) {
					t.Errorf("told of %v endpoints, want %d in a few times", told, burst)
				}
				if w.version != fmt.Sprint(burst) {
					t.Errorf("it goes on from %q, want %d", w.version, burst)
				}
			})
		})
	}
}

func watcherOf(t *testing.T, report func(discovery.Update)) *watcher {
	source, err := New(Options{
		Server: "https://example:6443", Namespace: "llm", Service: "llama",
		Slices: endpointslice.Options{Port: endpointslice.PortRef{Name: "http"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{Source: source, report: report, slices: make(map[string]endpointslice.Slice)}
}

func eventsOf(text string) *events {
	body := io.NopCloser(strings.NewReader(text))
	bounded := &boundedReader{from: body}
	return &events{body: body, bounded: bounded, decoder: json.NewDecoder(bounded)}
}
