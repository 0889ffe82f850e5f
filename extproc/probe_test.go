package extproc

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Of a client's word for a probe nothing is kept but an id of the one form.
func TestProbeID(t *testing.T) {
	id := strings.Repeat("0f", 16)
	for _, c := range []struct{ name, value, want string }{
		{"an id", id, id},
		{"none", "", ""},
		{"short", id[1:], ""},
		{"long", id + "0", ""},
		{"very long", strings.Repeat(id, 1000), ""},
		{"capitals", strings.ToUpper(id), ""},
		{"not hex", id[1:] + "g", ""},
		{"unprintable", id[1:] + "\x1b", ""},
		{"letters of two bytes", strings.Repeat("é", 16), ""},
	} {
		for _, header := range []*corev3.HeaderValue{
			{Key: ProbeHeader, RawValue: []byte(c.value)},
			{Key: ProbeHeader, Value: c.value},
		} {
			if got := readHead(&corev3.HeaderMap{Headers: []*corev3.HeaderValue{header}}, "", "").probe; got != c.want {
				t.Errorf("%s: kept %q, want %q", c.name, got, c.want)
			}
		}
	}
}
