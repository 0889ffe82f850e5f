//go:build jaeger

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
)

// jaeger is a running Jaeger, a real one, with the configuration of the example.
type jaeger struct {
	query     string // host:port of the HTTP API
	collector string // host:port of OTLP/gRPC
}

// jaegerSpan is a span as Jaeger's API tells it.
type jaegerSpan struct {
	TraceID       string
	SpanID        string
	OperationName string
	ProcessID     string
	References    []struct{ RefType, TraceID, SpanID string }
	Tags          []struct {
		Key   string
		Value any
	}
}

// jaegerTrace is a trace as Jaeger's API tells it.
type jaegerTrace struct {
	TraceID   string
	Spans     []jaegerSpan
	Processes map[string]struct{ ServiceName string }
}

// parent is the id of the span above, empty for a root.
func (s jaegerSpan) parent() string {
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" {
			return r.SpanID
		}
	}
	return ""
}

// tag prints a tag, empty if the span has none of that name.
func (s jaegerSpan) tag(key string) string {
	for _, t := range s.Tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// find returns the spans of a service for which is holds.
func (tr jaegerTrace) find(service string, is func(jaegerSpan) bool) (found []jaegerSpan) {
	for _, s := range tr.Spans {
		if tr.Processes[s.ProcessID].ServiceName == service && is(s) {
			found = append(found, s)
		}
	}
	return found
}

// String lists the spans for a failed test.
func (tr jaegerTrace) String() string {
	var b strings.Builder
	for _, s := range tr.Spans {
		fmt.Fprintf(&b, "\n%s: %s under %s: %s: %s", tr.TraceID, s.SpanID, s.parent(), tr.Processes[s.ProcessID].ServiceName, s.OperationName)
		for _, t := range s.Tags {
			fmt.Fprintf(&b, " %s=%.60v", t.Key, t.Value)
		}
	}
	return b.String()
}

// startJaeger starts the binary that $JAEGER names, on free ports.
func startJaeger(t *testing.T) *jaeger {
	t.Helper()
	program := os.Getenv("JAEGER")
	if program == "" {
		t.Fatal("JAEGER names no Jaeger: run make test-jaeger")
	}
	config, err := os.ReadFile("../../examples/tracing/jaeger.yaml")
	if err != nil {
		t.Fatal(err)
	}
	j := new(jaeger)
	text := string(config)
	var unused string
	for shipped, address := range map[string]*string{"127.0.0.1:16686": &j.query, "127.0.0.1:16685": &unused, "127.0.0.1:4317": &j.collector} {
		port, err := stack.FreePort("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
		if strings.Count(text, shipped) != 1 {
			t.Fatalf("jaeger.yaml has %s %d times, want once", shipped, strings.Count(text, shipped))
		}
		text = strings.Replace(text, shipped, *address, 1)
	}
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := stack.StartProcess("jaeger", nil, program, "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(30 * time.Second); err != nil {
			t.Errorf("Jaeger: %v", err)
		}
		if t.Failed() {
			output := process.Output()
			t.Logf("Jaeger printed:\n%s", output[max(0, len(output)-4000):])
		}
	})
	if err := process.Await(t.Context(), func() error {
		_, err := j.ask(t, "/api/services", nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return j
}

var errNoTrace = errors.New("no such trace")

// ask asks the API for traces.
func (j *jaeger) ask(t *testing.T, path string, query url.Values) ([]jaegerTrace, error) {
	target := url.URL{Scheme: "http", Host: j.query, Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.StatusCode == http.StatusNotFound {
		return nil, errNoTrace
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s %.200s", target.RequestURI(), r.Status, body)
	}
	if path == "/api/services" {
		return nil, nil
	}
	var answer struct{ Data []jaegerTrace }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w in %.200s", target.RequestURI(), err, body)
	}
	return answer.Data, nil
}

// trace waits until a trace is as ready wants it.
func (j *jaeger) trace(t *testing.T, s *stack.Stack, id string, ready func(jaegerTrace) error) (found jaegerTrace) {
	t.Helper()
	if err := s.Await(t.Context(), "trace "+id, func() error {
		traces, err := j.ask(t, "/api/traces/"+id, nil)
		if err != nil {
			return err
		}
		if len(traces) != 1 {
			return fmt.Errorf("%d traces", len(traces))
		}
		found = traces[0]
		return ready(found)
	}); err != nil {
		t.Fatalf("%v%s", err, found)
	}
	return found
}

// search returns the ids of the traces that a query of the example finds, sorted.
func (j *jaeger) search(t *testing.T, service, tags string) []string {
	t.Helper()
	traces, err := j.ask(t, "/api/traces", url.Values{"service": {service}, "tags": {tags}, "limit": {"100"}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, tr := range traces {
		ids = append(ids, tr.TraceID)
	}
	slices.Sort(ids)
	return ids
}
