package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/warmpath/warmpath/internal/route"
)

// explanation is the JSON of one body.
type explanation struct {
	File         string   `json:"file"`
	API          string   `json:"api"`
	Kind         string   `json:"kind"`           // text, raw or none
	Pool         string   `json:"pool,omitempty"` // empty for the default pool
	TextChars    int      `json:"text_chars"`
	PrefixLength any      `json:"prefix_length"` // a number or "auto"
	Key          string   `json:"key"`           // 16 hex digits; empty if kind is none
	Depth        int      `json:"depth"`         // characters that the key covers
	Tenant       string   `json:"tenant"`
	TenantSource string   `json:"tenant_source"`
	Model        string   `json:"model"`
	Adapter      string   `json:"adapter"`
	CacheSalt    string   `json:"cache_salt,omitempty"`
	Strategy     string   `json:"strategy"`
	Homes        []string `json:"homes"`
	Chosen       string   `json:"chosen,omitempty"`
	Reason       string   `json:"reason"`
	Notes        []string `json:"notes,omitempty"`
	Text         *string  `json:"text,omitempty"`

	whole string // canonical text far beyond the prefix length, to compare
}

func printJSON(w io.Writer, bodies []explanation) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if len(bodies) == 1 {
		return encoder.Encode(bodies[0])
	}
	var same *bool
	if bodies[0].byKey() {
		same = new(sameKey(bodies))
	}
	return encoder.Encode(struct {
		Bodies []explanation `json:"bodies"`
		// SameKey is not there under KV_AWARE, where the key of the whole text
		// decides nothing.
		SameKey *bool `json:"same_key,omitempty"`
		// PartAt is the first character, counted from 1, in which the texts
		// differ; 0 if they do not.
		PartAt int `json:"texts_part_at"`
	}{bodies, same, partAt(bodies[0].whole, bodies[1].whole)})
}

// byKey tells strategies under which bodies of one key belong together.
func (x explanation) byKey() bool { return x.Strategy != route.KVAware.String() }

func sameKey(bodies []explanation) bool {
	return bodies[0].Key != "" && bodies[0].Key == bodies[1].Key
}

// partAt returns the number of the first character that differs, or 0.
func partAt(a, b string) int {
	x, y := []rune(a), []rune(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i + 1
		}
	}
	if len(x) != len(y) {
		return min(len(x), len(y)) + 1
	}
	return 0
}

func printWords(w io.Writer, bodies []explanation) error {
	var b strings.Builder
	for _, x := range bodies {
		x.words(&b)
	}
	if len(bodies) == 2 {
		b.WriteString(difference(bodies))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (x explanation) words(b *strings.Builder) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(b, "%s\n", x.File)
	line("api", "%s", x.API)
	if x.Pool != "" {
		line("pool", "%s", x.Pool)
	}
	line("tenant", "%q from %s", x.Tenant, x.TenantSource)
	line("model", "%q adapter %q", x.Model, x.Adapter)
	switch what := map[string]string{"raw": "bytes", "text": "characters of text"}[x.Kind]; {
	case what == "":
		line("key", "none: no prompt text was found")
	case !x.byKey(): // the prefix length plays no part
		line("key", "%s of %d %s", x.Key, x.TextChars, what)
	case x.PrefixLength == auto && x.Depth < x.TextChars:
		line("key", "%s of the first %d of %d %s (auto; deeper in a server that knows this beginning to be hot)", x.Key, x.Depth, x.TextChars, what)
	case x.PrefixLength == auto:
		line("key", "%s of all %d %s", x.Key, x.TextChars, what)
	default:
		line("key", "%s of the first %d %s (at most %v)", x.Key, x.TextChars, what, x.PrefixLength)
	}
	if len(x.Homes) > 0 {
		line("homes", "%s", strings.Join(x.Homes, ", "))
	}
	if x.Chosen != "" {
		line("chosen", "%s, by %s", x.Chosen, x.Strategy)
	}
	line("reason", "%s", x.Reason)
	if len(x.Notes) > 0 {
		line("notes", "%s", strings.Join(x.Notes, ", "))
	}
	if x.Text != nil {
		line("text", "%q", *x.Text)
	}
}

func difference(bodies []explanation) string {
	at := partAt(bodies[0].whole, bodies[1].whole)
	var b strings.Builder
	if at == 0 {
		b.WriteString("the texts are the same")
	} else {
		fmt.Fprintf(&b, "the texts part at character %d", at)
	}
	if !bodies[0].byKey() {
		b.WriteString("\n")
		return b.String()
	}
	if sameKey(bodies) {
		b.WriteString("; the keys are the same")
		if at > 0 && bodies[0].PrefixLength == auto {
			b.WriteString(", until what they have in common is so hot that it needs several homes")
		}
		b.WriteString("\n")
		return b.String()
	}
	b.WriteString("; the keys differ")
	for _, f := range []struct{ name, a, b string }{
		{"tenants", bodies[0].Tenant, bodies[1].Tenant},
		{"models", bodies[0].Model, bodies[1].Model},
		{"adapters", bodies[0].Adapter, bodies[1].Adapter},
		{"cache salts", bodies[0].CacheSalt, bodies[1].CacheSalt},
	} {
		if f.a != f.b {
			fmt.Fprintf(&b, ", the %s too", f.name)
		}
	}
	b.WriteString("\n")
	return b.String()
}
