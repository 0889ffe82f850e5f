package envoypolicy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

// sample is what a real Envoy sent first on a stream, without the request.
type sample struct {
	InitialMetadata []string        `json:"initialMetadata,omitempty"`
	Message         json.RawMessage `json:"message"`
}

func samplePath(name string) string { return filepath.Join("testdata", "samples", name+".json") }

func writeSample(t *testing.T, name string, a arrival) {
	t.Helper()
	message, err := protojson.Marshal(&extprocv3.ProcessingRequest{
		Attributes: a.message.GetAttributes(), MetadataContext: a.message.GetMetadataContext(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(sample{a.metadata[Key], message}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(samplePath(name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readSample(t testing.TB, name string) Input {
	t.Helper()
	data, err := os.ReadFile(samplePath(name))
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	var m extprocv3.ProcessingRequest
	if err := protojson.Unmarshal(s.Message, &m); err != nil {
		t.Fatal(err)
	}
	return NewInput(metadata.NewIncomingContext(t.Context(), metadata.MD{Key: s.InitialMetadata}), &m)
}

func TestSamples(t *testing.T) {
	r := testResolver(t)
	for name, want := range routes {
		if got := describe(r.Resolve(readSample(t, name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The cluster's metadata as text says the same as in its typed form.
func TestClusterTextIsTheClustersMetadata(t *testing.T) {
	in := readSample(t, "cluster")
	in.ClusterMetadata = nil
	if got := describe(testResolver(t).Resolve(in)); got != routes["cluster"] {
		t.Errorf("%s, want %s", got, routes["cluster"])
	}
}

// What protobuf may do to its text form changes nothing.
func TestTextFormVaries(t *testing.T) {
	short := readSample(t, "route").RouteText // has no braces and spaces in strings
	for _, changed := range []string{
		strings.NewReplacer("{", "<", "}", ">").Replace(short),
		strings.ReplaceAll(short, " ", ""),
		strings.ReplaceAll(short, " ", "\t\r\n"),
		strings.ReplaceAll(short, " {", ": {"),
	} {
		if got := describe(testResolver(t).Resolve(Input{RouteText: changed})); got != routes["route"] {
			t.Errorf("%s, want %s\n%s", got, routes["route"], changed)
		}
	}
	for _, name := range []string{"route", "route-types"} {
		text := readSample(t, name).RouteText
		for what, changed := range map[string]string{
			"marker":         "goo.gle/debugproto " + text,
			"marker, spaces": "goo.gle/debugstr    " + text,
			"debugonly":      "goo.gle/debugonly " + text,
			"lines":          strings.ReplaceAll(strings.ReplaceAll(text, " { ", " {\n  "), " } ", "\n}\n"),
			"comment":        "# a comment {\n" + text + "# }",
			"separators":     strings.ReplaceAll(text, " } ", " }, "),
			"other fields":   `unknown: 5 other { a: [1, "b"] } [type.googleapis.com/x.Y] { z: -inf } ` + text,
			"others hidden":  `filter_metadata { key: "other" value { fields: [REDACTED] } } ` + text + `x: [REDACTED]`,
			"any in full":    text + `typed_filter_metadata { key: "k" value { [type.googleapis.com/google.protobuf.Duration] { seconds: 1 } } }`,
			"single quotes":  strings.ReplaceAll(text, `"warmpath"`, `'warmpath'`),
			"adjacent":       strings.ReplaceAll(text, `"warmpath"`, `"warm" 'path'`) + "# warmpath",
		} {
			if got := describe(testResolver(t).Resolve(Input{RouteText: changed})); got != routes[name] {
				t.Errorf("%s, %s: %s, want %s\n%s", name, what, got, routes[name], changed)
			}
		}
	}
}
